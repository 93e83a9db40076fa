// Sweeps before the first pass (subadmm.h), where they are asked for: of worlds with few contacts each is solved in turn while the others
// rest, and so is each limit, with Anderson's acceleration of where a sweep begins. docs/theory.md, section 9; the contact alone:
// section 15.
//
// Where a link has one contact, as the feet of most quadrupeds, a third to two thirds as many sweeps as passes do, and no operator is made.
// Many contacts push each other to and fro, and contacts in turn wait for each other where passes do not: those worlds begin with passes, and
// one whose sweeps run out goes on with them.
//
// s = J v* + Y u + e + R l, u = Y'l kept beside the impulses. Of a contact W = W_ii + diag(R), c = s - W l without its own impulse, and
// with the normal eliminated k = W_nt / W_nn, S = W_tt - W_tn k', f = -c_n / W_nn:
//
//   open    f <= 0                        l = 0
//   stick   p = -W^-1 c in the cone       l = p
//   slide   l_t = mu l_n d, l_n = f / q, q = 1 + mu k.d,  d the zero of  G = d x s_t  between p_t and S p_t
//
// Of d a sweep takes one step of Newton's method from where the last one left it, for the others have not settled either; and one of false
// position where that leaves the arc or G falls. What is extrapolated may leave a cone: it only tells the first contacts of a sweep what the
// later ones are about to do, and is solved anew in that sweep.
//
// Cost of a sweep: 6 width multiply-adds a contact, 2 width of another row, about 100 where some contact slides; 20 a row for Anderson. A
// contact waits for the one before it but for what that does to others: 3 width of its multiply-adds are made meanwhile.
#pragma once
#include "linalg/anderson.h"
#include "solvers/one_contact.h"
#include "solvers/subadmm/passes.h"

namespace stiction {

/// A lane of a GPU begins with passes: lanes that share a world have the same as one alone.
#ifdef __CUDACC__
inline constexpr bool kSweepsFirst = false;
#else
inline constexpr bool kSweepsFirst = true;
#endif

template <class Real>
class Sweeps {
 public:
  using S = Scalar<Real>;
  /// Contacts of a world, at most.
  static constexpr int kFew = 4;

  /// Of the contacts that do not stay open in the free motion, and all other rows. l (n): impulses.
  HD Sweeps(const RowProblem<Real>& problem, Real* impulse)
      : p(problem), takes_(worlds()), contacts_(min(problem.near, kFew)), l(impulse) {
    n_ = 3 * contacts_ + p.scalars;
  }
  HD void carve(Arena<Real>& arena) {
    u = arena.take(p.width), weight_ = arena.take(contacts_ + p.scalars);
    block_ = arena.template take_as<Block>(contacts_), row_ = arena.template take_as<RowBlock>(p.scalars);
    history_ = arena.template take_as<Entry>(n_), trail_ = arena.template take_as<Trail>(p.width);
  }
  /// Worlds that begin with them.
  HD const Mask<Real>& takes() const { return takes_; }

  /// Until `most` are made, or no contact or row changes by more than a part of tolerance V, when a world is done (change_weight). Worlds
  /// that do not take part keep their impulses. Returns which are done; count: sweeps of each.
  HD_ONCE Mask<Real> run(int most, S tolerance, Real tikhonov, Real& count) {
    const Real allowed = p.scale * tolerance * S(kPart);
    begin(tolerance * S(kPart));
    Mask<Real> going = takes_, done = mask_of<Real>(false);
    for (int sweep = 1; sweep <= most; ++sweep) {
      const Real change = one(going);
      count = select(going, count + Real(1), count);
      done = done | (going & (change <= allowed)), going = going & negate(done);
      if (!any(going)) break;
      if (sweep < most) extrapolate(tikhonov, going);
    }
    Real largest(0);  // impulses so large that nothing changes them
    for (int i = 0; i < n_; ++i) largest = maximum(largest, abs(l[row_of(i)]) * p.W[row_of(i)]);
    return done & (largest * kEpsilon<S> * S(kPart) <= allowed);
  }

 private:
  static constexpr int kDepth = 3;
  /// Of what a pass may change: a sweep that comes nearer slowly changes less than is left.
  static constexpr double kPart = 0.1;
  /// Impulses of what slides would grow out of bounds with a smaller q; a world where one would is not done.
  static constexpr double kLeastDepth = 0.05;
  using Entry = History<Real, kDepth>;
  struct Trail { Real image, change[kDepth]; };
  struct Block {
    Vec2<Real> coupling;  // k
    Real W_nn, one_over_n;
    Real S_xx, S_xy, S_yy, root;              // root of det S
    Real inverse_xx, inverse_xy, inverse_yy;  // of S
    Vec2<Real> way;                           // d, of length 1; 0: it has not slid
    Mat3<Real> next;                          // what its impulse does to the contact behind it
  };

  struct RowBlock {
    Real one_over, next;  // of W + R; what its impulse does to the row behind it
  };

  /// Those with few contacts, no more rows than dofs (what feet could press against each other no law decides), and of other rows none but
  /// limits: those that push both ways, and those without bounds, hardly move one at a time.
  HD Mask<Real> worlds() const {
    const Real zero(0), one(1);
    Real own(0), limits(0), others(0);
    for (int k = 0; k < p.near; ++k) own = own + select(p.W[3 * k + 2] > zero, one, zero);
    for (int k = 0; k < p.scalars; ++k) {
      const Real used = select(p.W[p.scalar_row(k)] > zero, one, zero);
      const Mask<Real> both_ways = (p.lower[k] < zero) & (p.upper[k] > zero);
      others = others + select(both_ways, used, zero), limits = limits + select(both_ways, zero, used);
    }
    const Real rows = own * static_cast<S>(3) + limits;
    return p.lone & (own <= Real(static_cast<S>(kFew))) & (rows > zero) & (rows <= p.columns) & (others <= zero);
  }
  /// Row i of those that take part.
  HD int row_of(int i) const { return i < 3 * contacts_ ? i : p.scalar_row(i - 3 * contacts_); }
  template <class Body>
  HD void each_run(uint32_t touched, Body body) const {
    if (p.dense()) body(0, p.width);
    else p.blocks.each_run(touched, body);
  }

  HD void begin(S tolerance) {
    const Real zero(0), one(1);
    auto put = [&](int i, Real x) { l[i] = select(takes_ & (p.W[i] > zero), x, l[i]); };
    for (int k = 0; k < contacts_; ++k) {
      const int i = 3 * k;
      make_block(k);
      const Vec3<Real> f = project_strict(Vec3<Real>{l[i], l[i + 1], l[i + 2]}, p.mu[k]);
      put(i, f.x), put(i + 1, f.y), put(i + 2, f.z);
      const Real* v = p.free + i;
      weight_[k] = change_weight(p, k, max(max(abs(v[0]), abs(v[1])), abs(v[2])), tolerance);
    }
    for (int k = 0; k < p.scalars; ++k) {
      const int i = p.scalar_row(k);
      put(i, clamp(l[i], p.lower[k], p.upper[k]));
      const Mask<Real> used = p.W[i] > zero;
      row_[k] = {select(used, one / select(used, p.W[i] + p.R[i], one), zero),
                 k + 1 < p.scalars ? along_next(k) : zero};
      weight_[contacts_ + k] = change_weight(p, p.contacts + k, max(abs(p.free[i]), p.W[i] * abs(l[i])), tolerance);
    }
    p.push(l, u);
    anderson_.clear(), anderson_.pass = 1;  // where it begins is known
    for (int i = 0; i < n_; ++i) anderson_.clear(history_[i], zero), history_[i].y = history_[i].image = l[row_of(i)];
    for (int a = 0; a < p.width; ++a) trail_[a] = {u[a], {zero, zero, zero}};
  }
  HD void make_block(int k) {
    const Real zero(0), one(1);
    const int i = 3 * k, behind = k + 1 < contacts_ ? i + 3 : i;
    const Real *x = p.row(i), *y = x + p.width, *z = y + p.width;
    const Real *t = p.row(behind), *v = t + p.width, *w = v + p.width;
    SymMat3<Real> W{zero, zero, zero, zero, zero, zero};
    Mat3<Real> next{{{zero, zero, zero}, {zero, zero, zero}, {zero, zero, zero}}};
    each_run(p.touches(k), [&](int from, int to) {
      for (int j = from; j < to; ++j) {
        const Real a = x[j], b = y[j], c = z[j];
        W.xx = W.xx + a * a, W.xy = W.xy + a * b, W.xz = W.xz + a * c;
        W.yy = W.yy + b * b, W.yz = W.yz + b * c, W.zz = W.zz + c * c;
      }
    });
    each_run(p.touches(k) & p.touches(behind / 3), [&](int from, int to) {
      for (int j = from; j < to; ++j) {
        auto add = [&](Vec3<Real>& row, Real of) {
          row.x = row.x + of * x[j], row.y = row.y + of * y[j], row.z = row.z + of * z[j];
        };
        add(next.row[0], t[j]), add(next.row[1], v[j]), add(next.row[2], w[j]);
      }
    });
    const ContactBlock<Real> b = contact_block(W, p.R[i], p.R[i + 2], p.W[i + 2]);
    const Real det = b.S_xx * b.S_yy - b.S_xy * b.S_xy;
    const Mask<Real> used = (b.W_nn > zero) & (det > zero);
    const Real by = select(used, one / select(used, det, one), zero),
               one_over_n = select(used, one / select(used, b.W_nn, one), zero);
    block_[k] = {b.coupling,           b.W_nn,      one_over_n,     b.S_xx,      b.S_xy,       b.S_yy,
                 sqrt(max(det, zero)), b.S_yy * by, -(b.S_xy * by), b.S_xx * by, {zero, zero}, next};
  }

  HD Real along_next(int k) const {
    const Real *x = p.row(p.scalar_row(k)), *y = x + p.width;
    Real sum(0);
    each_run(p.touches(p.contacts + k) & p.touches(p.contacts + k + 1), [&](int from, int to) {
      for (int j = from; j < to; ++j) sum = sum + x[j] * y[j];
    });
    return sum;
  }

  /// A sweep. Returns the largest change.
  HD Real one(const Mask<Real>& going) {
    const Real zero(0);
    Real most(0);
    Vec3<Real> ahead = contacts_ > 0 ? moves(0) : Vec3<Real>{};
    for (int k = 0; k < contacts_; ++k) {
      const int i = 3 * k;
      const Vec3<Real> f{l[i], l[i + 1], l[i + 2]};
      const Vec3<Real> s{ahead.x + p.R[i] * f.x, ahead.y + p.R[i + 1] * f.y, ahead.z + p.R[i + 2] * f.z};
      const Vec3<Real> next = select(going, solved(k, f, s, going, most), f), d = next - f;
      if (k + 1 < contacts_) ahead = moves(k + 1) + block_[k].next * d;
      const Real fast = max(max(abs(d.x) * p.W[i], abs(d.y) * p.W[i + 1]), abs(d.z) * p.W[i + 2]);
      most = maximum(most, fast * weight_[k]);
      l[i] = next.x, l[i + 1] = next.y, l[i + 2] = next.z;
      push(k, d);
    }
    Real other = p.scalars > 0 ? moves_row(0) : zero;
    for (int k = 0; k < p.scalars; ++k) {
      const int i = p.scalar_row(k);
      const RowBlock& b = row_[k];
      const Real moved = clamp(l[i] - (other + p.R[i] * l[i]) * b.one_over, p.lower[k], p.upper[k]);
      const Real next = select(going, moved, l[i]), d = next - l[i];
      if (k + 1 < p.scalars) other = moves_row(k + 1) + b.next * d;
      most = maximum(most, abs(d) * p.W[i] * weight_[contacts_ + k]);
      l[i] = next;
      p.add_push(i, d, u);
    }
    return most;
  }
  /// J v + e of contact k.
  HD Vec3<Real> moves(int k) const {
    const int i = 3 * k;
    const Real *x = p.row(i), *y = x + p.width, *z = y + p.width;
    Vec3<Real> s{p.free[i] + p.e[i], p.free[i + 1] + p.e[i + 1], p.free[i + 2] + p.e[i + 2]};
    each_run(p.touches(k), [&](int from, int to) {
      for (int j = from; j < to; ++j) {
        const Real by = u[j];
        s.x = s.x + x[j] * by, s.y = s.y + y[j] * by, s.z = s.z + z[j] * by;
      }
    });
    return s;
  }
  HD Real moves_row(int k) const { return p.velocity(p.scalar_row(k), u) + p.e[p.scalar_row(k)]; }
  HD void push(int k, Vec3<Real> d) {
    const Real *x = p.row(3 * k), *y = x + p.width, *z = y + p.width;
    each_run(p.touches(k), [&](int from, int to) {
      for (int j = from; j < to; ++j) u[j] = u[j] + (x[j] * d.x + y[j] * d.y + z[j] * d.z);
    });
  }

  /// The impulse of contact k while the others rest: s with the present one, f.
  HD Vec3<Real> solved(int k, Vec3<Real> f, Vec3<Real> s, const Mask<Real>& going, Real& most) {
    Block& b = block_[k];
    const Real zero(0), mu = p.mu[k];
    const Real own_n = b.W_nn * (f.z + b.coupling.x * f.x + b.coupling.y * f.y), alone = (own_n - s.z) * b.one_over_n;
    const Vec2<Real> own{b.S_xx * f.x + b.S_xy * f.y, b.S_xy * f.x + b.S_yy * f.y};
    const Vec2<Real> end{own.x - s.x + b.coupling.x * s.z, own.y - s.y + b.coupling.y * s.z};  // S p_t
    const Vec2<Real> stick{b.inverse_xx * end.x + b.inverse_xy * end.y, b.inverse_xy * end.x + b.inverse_yy * end.y};
    const Real normal = alone - (b.coupling.x * stick.x + b.coupling.y * stick.y), limit = mu * normal;
    const Mask<Real> closed = alone > zero,
                     holds = (normal >= zero) & (stick.x * stick.x + stick.y * stick.y <= limit * limit);
    const Vec3<Real> held{select(closed, stick.x, zero), select(closed, stick.y, zero), select(closed, normal, zero)};
    const Mask<Real> slides = closed & going & negate(holds);
    if (!any(slides)) return held;
    return select(slides, slid(b, end, stick, slides, alone, mu, most), held);
  }
  /// Of one that slides.
  HD Vec3<Real> slid(Block& b, Vec2<Real> end, Vec2<Real> stick, const Mask<Real>& slides, Real alone, Real mu,
                     Real& most) const {
    using slip_detail::cross;
    const Real one(1), zero(0), turn = cross(stick, end);
    auto is_outside = [&](Vec2<Real> d) { return (cross(stick, d) * turn < zero) | (cross(d, end) * turn < zero); };
    const Mask<Real> astray = slides & (is_outside(b.way) | negate(stick.x * b.way.x + stick.y * b.way.y > zero));
    if (any(astray)) {
      const Vec2<Real> middle{end.x + b.root * stick.x, end.y + b.root * stick.y};  // S^1/2 p_t
      b.way = select(astray, slip_detail::unit(middle), b.way);
    }
    // G and its slope as d turns, both linear in f and S p_t; q is 1 + tilt, and bend its slope.
    const Vec2<Real> d = b.way, n{-d.y, d.x}, k{mu * b.coupling.x, mu * b.coupling.y};
    const Real tilt = k.x * d.x + k.y * d.y, q = one + tilt, bend = k.x * n.x + k.y * n.y;
    const Vec2<Real> S_d = times_S(b, d), S_n = times_S(b, n), falls{q * d.x - bend * n.x, q * d.y - bend * n.y};
    const Real G = mu * cross(d, S_d) * alone - (q * d.x * end.y - q * d.y * end.x);
    const Real slope = mu * (cross(d, S_n) - (d.x * S_d.x + d.y * S_d.y)) * alone + (falls.x * end.x + falls.y * end.y);
    const Mask<Real> rises = slope > zero;
    const Real step = clamp(select(rises, -G / select(rises, slope, one), zero), -one, one);
    const Vec2<Real> to{d.x + n.x * step, d.y + n.y * step};
    const Real length = sqrt(one + step * step), depth = length + tilt + bend * step, least = length * S(kLeastDepth);
    const Real share = alone / max(depth, least), one_over = one / length;
    Vec3<Real> l{mu * share * to.x, mu * share * to.y, share * length};
    b.way = select(slides, Vec2<Real>{to.x * one_over, to.y * one_over}, d);
    Mask<Real> wild = slides & (depth < least);
    const Mask<Real> beside = slides & (is_outside(to) | negate(rises));
    if (any(beside)) {
      const Vec2<Real> last = slip_detail::unit(select(Mask<Real>((G < zero) == (turn > zero)), end, stick));
      const Real there =
          mu * cross(last, times_S(b, last)) * alone - (one + k.x * last.x + k.y * last.y) * cross(last, end);
      const Mask<Real> between = (G < zero) != (there < zero);
      const Real part = select(between, G / select(between, G - there, one), one);
      const Vec2<Real> way = slip_detail::unit(Vec2<Real>{d.x + (last.x - d.x) * part, d.y + (last.y - d.y) * part});
      const Real q_there = one + k.x * way.x + k.y * way.y, own = alone / max(q_there, Real(S(kLeastDepth)));
      b.way = select(beside, way, b.way);
      l = select(beside, Vec3<Real>{mu * own * way.x, mu * own * way.y, own}, l);
      wild = (wild & negate(beside)) | (beside & (q_there < Real(S(kLeastDepth))));
    }
    most = select(wild, Real(1e30f), most);
    return l;
  }
  HD static Vec2<Real> times_S(const Block& b, Vec2<Real> d) {
    return {b.S_xx * d.x + b.S_xy * d.y, b.S_xy * d.x + b.S_yy * d.y};
  }

  /// From where a sweep ended to where the next one begins.
  HD void extrapolate(Real tikhonov, const Mask<Real>& going) {
    const int place = anderson_.pass % kDepth;
    auto sums = anderson_.begin_sums();
    for (int i = 0; i < n_; ++i) {
      const int row = row_of(i);
      sums.gather(history_[i], l[row], [&](Real x) { return x * p.W[row]; });
    }
    for (int a = 0; a < p.width; ++a) trail_[a].change[place] = u[a] - trail_[a].image, trail_[a].image = u[a];
    anderson_.finish_sums(Serial{}, sums, tikhonov);
    const auto by = anderson_.extrapolation();
    for (int i = 0; i < n_; ++i) {
      Real& to = l[row_of(i)];
      to = select(going, by.step(history_[i]), to);
    }
    if (!by.leaps) return;
    for (int a = 0; a < p.width; ++a) {
      const Trail& of = trail_[a];
      Real next = of.image;
      for (int j = 0; j < kDepth; ++j) next = next - of.change[j] * by.gamma[j];
      u[a] = next;
    }
  }

  const RowProblem<Real>& p;
  Mask<Real> takes_;
  const int contacts_;  // that take part
  int n_;               // rows
  Real *l, *u;          // (n) of p; (width) Y'l
  Real* weight_;        // (contacts + scalars) of changes
  Block* block_;        // (contacts)
  RowBlock* row_;       // (scalars)
  Entry* history_;      // (n) of l
  Trail* trail_;        // (width) of u
  Anderson<Real, kDepth> anderson_;
};

}  // namespace stiction
