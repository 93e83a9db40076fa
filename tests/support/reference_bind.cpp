// stiction_reference: host/reference for the Python tests.
//
// Functions take a Model (made once with Model(arrays), a dictionary of arrays by the field names of struct Model) or such a
// dictionary, and NumPy arrays. Contacts are a dictionary of arrays: geom (n, 2), pos (n, 3), frame (n, 3, 3) with rows
// t1, t2, n, dist (n), and optionally ahead (n, 3). Problems are dictionaries: A, b, J, e, R, mu and optionally phi, J_row,
// e_row, R_row, lower, upper, timestep, gravity, mean_mass. Errors: ValueError naming the field, KeyError for what is missing.
#include <pybind11/eigen.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include "host/model/fields.h"
#include "host/reference/one_contact.h"
#include "host/reference/step.h"

namespace py = pybind11;
using namespace stiction;
using namespace stiction::reference;

namespace {

template <class T>
void fill(const py::dict& arrays, const char* name, std::vector<T>& field, int size) {
  py::array_t<T, py::array::c_style | py::array::forcecast> array(0);
  if (arrays.contains(name)) array = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(arrays[name]);
  if (!array) throw py::error_already_set();
  if (array.size() != size)
    throw std::invalid_argument(std::string(name) + ": got " + std::to_string(array.size()) + " entries, expected " +
                                std::to_string(size));
  field.assign(array.data(), array.data() + array.size());
}

std::shared_ptr<Model> model_of(const py::dict& arrays) {
  auto model = std::make_shared<Model>();
  visit_sizes(*model, [&](const char* name, int& count) { count = arrays[name].cast<int>(); });
  if (arrays.contains("timestep")) model->timestep = arrays["timestep"].cast<double>();
  if (arrays.contains("disableflags")) model->disableflags = arrays["disableflags"].cast<int>();
  if (arrays.contains("gravity")) fill(arrays, "gravity", model->gravity, 3);
  fill(arrays, "mesh_vertnum", model->mesh_vertnum, model->nmesh);
  int vertices = detail::total_mesh_vertices(*model);
  fill(arrays, "mesh_edgeadr", model->mesh_edgeadr, model->nmesh > 0 ? vertices + 1 : 0);
  visit_fields(*model,
               [&](const char* name, auto& field, int rows, int cols) { fill(arrays, name, field, rows * cols); });
  visit_names(*model, [&](const char* name, Names& names, int count) {
    names = arrays.contains(name) ? arrays[name].cast<Names>() : Names(count);
  });
  validate(*model);
  return model;
}

std::vector<Contact> contacts_of(const py::dict& d) {
  if (d.empty()) return {};
  auto geom = d["geom"].cast<py::array_t<int, py::array::c_style | py::array::forcecast>>();
  using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
  auto pos = d["pos"].cast<Doubles>(), frame = d["frame"].cast<Doubles>(), dist = d["dist"].cast<Doubles>();
  const bool beyond = d.contains("ahead");
  const Doubles ahead = beyond ? d["ahead"].cast<Doubles>() : Doubles();
  py::ssize_t n = dist.size();
  if (geom.size() != 2 * n || pos.size() != 3 * n || frame.size() != 9 * n || (beyond && ahead.size() != 3 * n))
    throw std::invalid_argument("contacts: geom, pos, frame, dist have " + std::to_string(geom.size()) + ", " +
                                std::to_string(pos.size()) + ", " + std::to_string(frame.size()) + ", " +
                                std::to_string(n) + " entries, expected 2 n, 3 n, 9 n, n");
  std::vector<Contact> contacts;
  for (py::ssize_t i = 0; i < n; ++i) {
    Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> rows(frame.data() + 9 * i);
    const double* p = pos.data() + 3 * i;
    contacts.push_back({geom.data()[2 * i], geom.data()[2 * i + 1], {p[0], p[1], p[2]}, rows, dist.data()[i]});
    if (beyond) contacts.back().ahead = Eigen::Map<const Eigen::Vector3d>(ahead.data() + 3 * i);
  }
  return contacts;
}

Matrix stacked(const std::vector<Vector3d>& points) {
  Matrix m(points.size(), 3);
  for (std::size_t i = 0; i < points.size(); ++i) m.row(i) = points[i].transpose();
  return m;
}

py::array_t<double> stacked(const std::vector<Matrix3d>& rotations) {
  py::array_t<double> out(std::vector<py::ssize_t>{static_cast<py::ssize_t>(rotations.size()), 3, 3});
  auto a = out.mutable_unchecked<3>();
  for (std::size_t i = 0; i < rotations.size(); ++i)
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c) a(i, r, c) = rotations[i](r, c);
  return out;
}

py::dict fk(const Model& model, const Vector& q) {
  Kinematics k = forward_kinematics(model, q);
  Matrix quats(model.nbody, 4);
  for (int b = 0; b < model.nbody; ++b) {
    const Quaterniond& r = k.body_quat[b];
    quats.row(b) << r.w(), r.x(), r.y(), r.z();
  }
  py::dict out;
  out["xpos"] = stacked(k.body_pos);
  out["xquat"] = quats;
  out["xmat"] = stacked(k.body_rot);
  out["xipos"] = stacked(k.com);
  out["geom_xpos"] = stacked(k.geom_pos);
  out["geom_xmat"] = stacked(k.geom_rot);
  out["site_xpos"] = stacked(k.site_pos);
  out["site_xmat"] = stacked(k.site_rot);
  return out;
}

py::dict to_dict(const ContactProblem& p) {
  py::dict d;
  d["A"] = p.A, d["b"] = p.b, d["J"] = p.J, d["e"] = p.e, d["R"] = p.R, d["mu"] = p.mu, d["phi"] = p.phi;
  d["J_row"] = p.J_row, d["e_row"] = p.e_row, d["R_row"] = p.R_row, d["lower"] = p.lower, d["upper"] = p.upper;
  std::vector<int> kinds;
  for (RowKind kind : p.kinds) kinds.push_back(static_cast<int>(kind));
  d["kind"] = kinds;
  d["geom"] = p.geoms;
  d["timestep"] = p.timestep, d["gravity"] = p.gravity, d["mean_mass"] = p.mean_mass;
  return d;
}

ContactProblem problem_of(const py::dict& d) {
  ContactProblem p;
  p.A = d["A"].cast<Matrix>(), p.b = d["b"].cast<Vector>(), p.J = d["J"].cast<Matrix>();
  p.e = d["e"].cast<Vector>(), p.R = d["R"].cast<Vector>(), p.mu = d["mu"].cast<Vector>();
  // Unknown gaps count as open: the scale then looks at contacts with an impulse only.
  p.phi = d.contains("phi") ? d["phi"].cast<Vector>() : Vector(Vector::Ones(p.mu.size()));
  if (d.contains("J_row")) {
    p.J_row = d["J_row"].cast<Matrix>(), p.e_row = d["e_row"].cast<Vector>(), p.R_row = d["R_row"].cast<Vector>();
    p.lower = d["lower"].cast<Vector>(), p.upper = d["upper"].cast<Vector>();
  } else {
    p.J_row = Matrix::Zero(0, p.b.size());
  }
  auto scalar = [&](const char* name) { return d.contains(name) ? d[name].cast<double>() : 0.0; };
  p.timestep = scalar("timestep"), p.gravity = scalar("gravity"), p.mean_mass = scalar("mean_mass");
  check_sizes(p);
  return p;
}

py::dict to_dict(const Certificate& c) {
  py::dict d;
  d["r_dyn"] = c.r_dyn, d["r_con"] = c.r_con, d["r_ccp"] = c.r_ccp, d["r_row"] = c.r_row;
  d["r_row_relative"] = c.r_row_relative, d["r_cone"] = c.r_cone, d["penetration"] = c.penetration;
  d["scale"] = c.scale, d["degenerate"] = c.degenerate;
  return d;
}

py::dict to_dict(const Solution& s) {
  py::dict d;
  d["v"] = s.v, d["impulse"] = s.impulse, d["row_impulse"] = s.row_impulse;
  d["certificate"] = to_dict(s.certificate);
  d["iterations"] = s.iterations, d["converged"] = s.converged, d["solver"] = s.solver;
  return d;
}

Law law_of(const std::string& law) {
  if (law == "coulomb") return Law::kCoulomb;
  if (law == "convex") return Law::kConvex;
  throw std::invalid_argument("law: got '" + law + "', expected 'coulomb' or 'convex'");
}

Integrator integrator_of(const std::string& name) {
  if (name == "euler") return Integrator::kEuler;
  if (name == "implicit") return Integrator::kImplicit;
  throw std::invalid_argument("integrator: got '" + name + "', expected 'euler' or 'implicit'");
}

void bind_dynamics(py::module_& m) {
  using namespace py::literals;
  m.def("fk", &fk, "model"_a, "q"_a);
  m.def("integrate", &reference::integrate, "model"_a, "q"_a, "v"_a, "h"_a);
  m.def(
      "mass_matrix", [](const Model& x, const Vector& q) { return mass_matrix(x, forward_kinematics(x, q)); },
      "model"_a, "q"_a);
  m.def(
      "bias", [](const Model& x, const Vector& q, const Vector& v) { return bias(x, forward_kinematics(x, q), q, v); },
      "model"_a, "q"_a, "v"_a);
  m.def(
      "passive",
      [](const Model& x, const Vector& q, const Vector& v) {
        return passive_forces(x, forward_kinematics(x, q), q, v).total;
      },
      "model"_a, "q"_a, "v"_a);
  m.def(
      "actuation",
      [](const Model& x, const Vector& q, const Vector& v, const Vector& u) {
        return actuator_forces(x, q, v, u).total;
      },
      "model"_a, "q"_a, "v"_a, "ctrl"_a);
  m.def("smooth_acceleration", &smooth_acceleration, "model"_a, "q"_a, "v"_a, "ctrl"_a, "qfrc_applied"_a = Vector(),
        "xfrc_applied"_a = Matrix());
  m.def(
      "point_jacobian",
      [](const Model& x, const Vector& q, int body, const Vector3d& point) {
        return point_jacobian(x, forward_kinematics(x, q), body, point);
      },
      "model"_a, "q"_a, "body"_a, "point"_a);
  m.def(
      "angular_jacobian",
      [](const Model& x, const Vector& q, int body) { return angular_jacobian(x, forward_kinematics(x, q), body); },
      "model"_a, "q"_a, "body"_a);
  m.def(
      "body_velocities",
      [](const Model& x, const Vector& q, const Vector& v) {
        std::vector<Vector3d> linear, angular;
        for (const BodyMotion& b : body_motions(x, forward_kinematics(x, q), q, v))
          linear.push_back(b.linear), angular.push_back(b.angular);
        return py::make_tuple(stacked(linear), stacked(angular));
      },
      "model"_a, "q"_a, "v"_a);
  m.def(
      "energy",
      [](const Model& x, const Vector& q, const Vector& v) {
        Kinematics k = forward_kinematics(x, q);
        return py::make_tuple(kinetic_energy(x, k, v), potential_energy(x, k));
      },
      "model"_a, "q"_a, "v"_a);
  m.def(
      "free_motion",
      [](const Model& x, const Vector& q, const Vector& v, const Vector& u, const std::string& integrator, double h,
         const Vector& qfrc, const Matrix& xfrc) {
        FreeMotion f = free_motion(x, forward_kinematics(x, q), {q, v, u, qfrc, xfrc}, integrator_of(integrator), h);
        py::dict d;
        d["A"] = f.A, d["b"] = f.b, d["v_free"] = f.v_free, d["M"] = f.M;
        d["damping"] = f.damping, d["stiffness"] = f.stiffness;
        return d;
      },
      "model"_a, "q"_a, "v"_a, "ctrl"_a, "integrator"_a, "h"_a, "qfrc_applied"_a = Vector(),
      "xfrc_applied"_a = Matrix());
}

void bind_contact(py::module_& m) {
  using namespace py::literals;
  m.def(
      "assemble",
      [](const Model& x, const Vector& q, const Vector& v, const Vector& u, const py::dict& contacts,
         const std::string& integrator, double h, double erp, double max_recovery, const Vector& qfrc,
         const Matrix& xfrc, double penetration_allowance, double tangential_compliance, double rounding,
         const Vector& owed) {
        StepOptions o{
            h, integrator_of(integrator), erp, max_recovery, penetration_allowance, tangential_compliance, rounding};
        return to_dict(assemble(x, {q, v, u, qfrc, xfrc, owed}, contacts_of(contacts), o));
      },
      "model"_a, "q"_a, "v"_a, "ctrl"_a, "contacts"_a, "integrator"_a, "h"_a, "erp"_a = 0.2, "max_recovery"_a = 1.0,
      "qfrc_applied"_a = Vector(), "xfrc_applied"_a = Matrix(), "penetration_allowance"_a = 1e-6,
      "tangential_compliance"_a = 0.0, "rounding"_a = 0.0, "owed"_a = Vector());
  m.def(
      "solve",
      [](const py::dict& problem, const std::string& law, double tolerance, int sweeps, int iterations) {
        return to_dict(solve(problem_of(problem), {law_of(law), tolerance, sweeps, iterations}));
      },
      "problem"_a, "law"_a = "coulomb", "tolerance"_a = 1e-10, "sweeps"_a = 2000, "iterations"_a = 10000);
  m.def(
      "solve_delassus",
      [](const Matrix& W, const Vector& q, const Vector& mu, const std::string& law, const std::string& solver,
         double tolerance, int sweeps, int iterations) {
        Delassus d = bare_delassus(W, q, mu);
        SolverOptions o{law_of(law), tolerance, sweeps, iterations};
        Vector zero = Vector::Zero(q.size());
        if (solver != "best" && solver != "nsgs" && solver != "admm")
          throw std::invalid_argument("solver: got '" + solver + "', expected 'best', 'nsgs' or 'admm'");
        ImpulseSolution s = solver == "nsgs" ? nsgs(d, o, zero) : solver == "admm" ? admm(d, o, zero) : solve(d, o);
        py::dict out;
        out["impulse"] = s.impulse, out["iterations"] = s.iterations, out["converged"] = s.converged;
        out["solver"] = s.solver, out["certificate"] = to_dict(certify(d, s.impulse));
        return out;
      },
      "W"_a, "q"_a, "mu"_a, "law"_a = "coulomb", "solver"_a = "best", "tolerance"_a = 1e-10, "sweeps"_a = 2000,
      "iterations"_a = 10000);
  m.def(
      "certificate",
      [](const py::dict& problem, const Vector& v, const Vector& impulse, const Vector& row_impulse) {
        return to_dict(certify(problem_of(problem), v, impulse, row_impulse));
      },
      "problem"_a, "v"_a, "impulse"_a, "row_impulse"_a = Vector());
  m.def(
      "certificate_delassus",
      [](const Matrix& W, const Vector& q, const Vector& mu, const Vector& impulse) {
        return to_dict(certify(bare_delassus(W, q, mu), impulse));
      },
      "W"_a, "q"_a, "mu"_a, "impulse"_a);
  m.def(
      "step",
      [](const Model& x, const Vector& q, const Vector& v, const Vector& u, const py::dict& contacts,
         const std::string& integrator, double h, double erp, double max_recovery, const Vector& qfrc,
         const Matrix& xfrc, double tolerance, double penetration_allowance, const Vector& owed) {
        StepOptions o{h, integrator_of(integrator), erp, max_recovery, penetration_allowance};
        StepResult r = step(x, {q, v, u, qfrc, xfrc, owed}, contacts_of(contacts), o, {Law::kCoulomb, tolerance});
        py::dict d = to_dict(r.solution);
        d["q"] = r.q, d["v"] = r.v, d["owed"] = r.owed, d["problem"] = to_dict(r.problem);
        return d;
      },
      "model"_a, "q"_a, "v"_a, "ctrl"_a, "contacts"_a, "integrator"_a, "h"_a, "erp"_a = 0.2, "max_recovery"_a = 1.0,
      "qfrc_applied"_a = Vector(), "xfrc_applied"_a = Matrix(), "tolerance"_a = 1e-10, "penetration_allowance"_a = 1e-6,
      "owed"_a = Vector());
  m.def("solved_velocity", &reference::solved_velocity, "model"_a, "q"_a, "end_q"_a, "end_v"_a);
}

}  // namespace

PYBIND11_MODULE(stiction_reference, m) {
  m.doc() = "The dense double-precision oracle, for tests.";
  py::class_<Model, std::shared_ptr<Model>>(m, "Model", py::module_local()).def(py::init(&model_of), py::arg("arrays"));
  py::implicitly_convertible<py::dict, Model>();
  bind_dynamics(m);
  bind_contact(m);
}
