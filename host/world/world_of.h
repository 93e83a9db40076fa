// What worlds of all backends have once their numbers' type is known: the model's tables, records, and the job of their kernels.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include "host/world/world.h"
#include "host/world/world_options.h"
#include "step/export.h"
#include "step/fallback.h"
#include "step/record_state.h"

namespace stiction {

/// Job: a StepJob. width: worlds that a kernel steps side by side, whose records are interleaved. A backend fills the job by
/// make_job() and what is its own.
template <class Job>
class WorldOf : public World {
 public:
  using T = typename Job::Number;

  WorldOf(std::shared_ptr<const Model> model, const WorldOptions& options, int width)
      : World(std::move(model), options),
        tables_(convert<T>(*compile(*model_, room_of<typename Job::Shape>(), options.max_contacts))),
        layout_(tables_->view),
        width_(width),
        packs_((num_envs() + width - 1) / width) {
    refuse_fallback();
    if (tables_->view.has_spin) refuse_without_couples();
    if (tables_->view.bonds > 0) refuse_loops();
    add_contacts(tables_->view.world_slots + tables_->view.pair_slots);
    job_.options = options_in<T>({options_.step, options_.solver});
  }

  void step(int n) final {
    if (n < 0) throw std::invalid_argument("n is " + std::to_string(n) + ", expected >= 0");
    if (n == 0) return;
    advance(n, [this] { run_steps(); });
  }
  void previous_states(double* qpos, double* qvel, double* owed) final {
    fetch({records_.get()});
    for (int64_t e = 0; e < num_envs(); ++e)
      state_of_record(tables_->view, record_of(e), qpos + e * model_->nq, qvel + e * model_->nv, owed + e * model_->nv);
  }
  int64_t record_size() const final { return layout_.reals(); }
  void get_records(double* rows) final {
    fetch({records_.get()});
    each_number([&](T& number) { *rows++ = number; });
  }
  void set_records(const double* rows) final {
    wait();
    each_number([&](T& number) { number = static_cast<T>(*rows++); });
    send(*records_);
    synchronize();
    contacts_found_ = false;
    if (watch_contacts_) release(), update_contacts(nullptr);
  }
  int pack_width() const final { return width_; }

 protected:
  /// job_.steps steps of all environments.
  virtual void run_steps() = 0;
  /// n > 0 steps, which `run` queues, and what follows from them.
  template <class Run>
  void advance(int n, Run run) {
    release();
    job_.steps = n;
    contacts_found_ = false;
    run();
    update_watched();
  }

  int64_t record_bytes() const { return static_cast<int64_t>(sizeof(T)) * record_size() * packs_ * width_; }

  /// record_of(env)(i): number i of an environment's record, as the host has it.
  auto record_of(int64_t env) const {
    T* first = static_cast<T*>(records_->mirror()) + env / width_ * record_size() * width_ + env % width_;
    return [first, width = width_](int64_t i) -> T& { return first[i * width]; };
  }

  /// Memory of arrays and records, and where the kernels find them.
  void make_job() {
    make_arrays();
    records_ = allocate(record_bytes());
    reset_rows_ = make_reset_rows<T>();
    BatchArrays<T>& a = job_.arrays;
    a.num_envs = num_envs(), a.records = static_cast<T*>(records_->data());
    a.qpos = at("qpos"), a.qvel = at("qvel"), a.ctrl = at("ctrl"), a.time = at<double>("time");
    a.qfrc_applied = at("qfrc_applied"), a.xfrc_applied = at("xfrc_applied");
    a.mocap_pos = at("mocap_pos"), a.mocap_quat = at("mocap_quat"), a.status = at<int>("status");
    for (int f = 0; f < kCertificateFields; ++f)
      a.certificate[f] = at(std::string("certificate.") + kCertificateNames[f]);
    job_.parameters = parameter_arrays<T>();
    job_.outputs = {at("xpos"), at("xquat"), at("body_linvel"), at("body_angvel"), at("site_xpos"), job_.parameters};
    contact_arrays_ = {at<int>("contact.geom"),
                       at("contact.pos"),
                       at("contact.frame"),
                       at("contact.dist"),
                       at("contact.impulse"),
                       at("contact.couple"),
                       at("contact.ahead"),
                       at<uint8_t>("contact.active"),
                       at<int>("contact.count"),
                       at("net_contact_force"),
                       static_cast<T>(1 / options_.step.h)};
  }

  std::unique_ptr<ModelTables<T>> tables_;
  RecordLayout<ModelView<Capacity, T>> layout_;
  int width_, packs_;
  std::shared_ptr<Memory> records_;
  Job job_{};
  ResetRows<T> reset_rows_{};
  ContactArrays<T> contact_arrays_{};

 private:
  static std::string name_of(const SolverOptions<double>& o) {
    return with_solver(o, [](auto s, const auto&) { return std::string(decltype(s)::kName); });
  }
  /// A solver that was asked for as the fallback, but aims at another law.
  void refuse_fallback() const {
    FallbackPlan plan;
    if (plan_fallback<double>({options_.step, options_.solver}, plan) || plan.solver < 0) return;
    const char* const laws[] = {"Coulomb's law", "the convex relaxation of Coulomb's law", "maximum dissipation"};
    throw std::invalid_argument("fallback '" + name_of(aimed_at<double>(plan.solver, plan.law)) + "' does not solve " +
                                laws[static_cast<int>(plan.law)] + ", which solver '" + name_of(options_.solver) +
                                "' aims at here");
  }
  /// Under maximum dissipation, which has the impulses of loops as they are, contacts of closed loops may have no solution.
  void refuse_loops() const {
    if (law_of(options_.solver) == Law::kDissipation)
      throw std::invalid_argument("solver '" + name_of(options_.solver) +
                                  "' by maximum dissipation carries no connect or weld equality, which the model has; "
                                  "law='coulomb' does");
  }
  void refuse_without_couples() const {
    auto require = [](const char* role, const SolverOptions<double>& o) {
      if (!carries_couples(o))
        throw std::invalid_argument(std::string(role) + " '" + name_of(o) +
                                    "' carries no torsional or rolling friction, which the model has (condim 4 or 6); "
                                    "Model.with_friction(torsional=0, rolling=0) takes it out");
    };
    require("solver", options_.solver);
    FallbackPlan plan;
    if (plan_fallback<double>({options_.step, options_.solver}, plan) && plan.solver >= 0)
      require("fallback", aimed_at<double>(plan.solver, plan.law));
    if (options_.step.tangential_compliance > 0)
      throw std::invalid_argument("tangential_compliance is not for models with torsional or rolling friction");
  }

  template <class N = T>
  N* at(const std::string& name) {
    return buffer(name).template as<N>();
  }
  template <class Visit>
  void each_number(Visit visit) {
    for (int64_t e = 0; e < num_envs(); ++e) {
      const auto record = record_of(e);
      for (int64_t i = 0; i < record_size(); ++i) visit(record(i));
    }
  }
};

}  // namespace stiction
