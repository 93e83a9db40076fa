// What a world keeps between steps besides its state: warm start, the contacts of the last step and the state it began with.
// Internal: pack by pack, field by field, so that records move as whole registers.
#pragma once
#include "contact/impulses.h"
#include "step/user_arrays.h"

namespace stiction {

/// Fields of a contact slot in the records, besides which candidate it is.
enum RecordField : int {
  kRecordT1,
  kRecordT2,
  kRecordN,
  kRecordGap,
  kRecordX,
  kRecordY,
  kRecordZ,
  kRecordNx,
  kRecordNy,
  kRecordNz,
  kRecordMu,
  kRecordGeom1,
  kRecordGeom2,
  kRecordFields,
  // Where the model has torsional or rolling friction: the couple about t1, t2, n                  N m s
  kRecordSpin = kRecordFields,
  kSpinFields = 3
};

/// How the records of a world are laid out: the candidates of all slots side by side, because most are asked for no more than that (-1:
/// none); slots; how far those of pairs touch ahead; then limits and dry friction per dof, then ties and bonds.
template <class Model>
struct RecordLayout {
  int slots, pairs, dofs, ties, bonds, fields;
  HD explicit RecordLayout(const Model& m)
      : slots(m.world_slots),
        pairs(m.pair_slots),
        dofs(m.nv),
        ties(m.ties),
        bonds(m.bonds),
        fields(kRecordFields + (m.has_spin ? kSpinFields : 0)) {}
  HD int slot_id(int c) const { return c; }
  HD int pair_id(int s) const { return slots + s; }
  HD int slot(int c) const { return slots + pairs + c * fields; }
  HD int pair(int s) const { return slot(slots + s); }
  HD int contacts() const { return pair(pairs); }  // where they end
  HD int ahead(int s) const { return contacts() + 3 * s; }
  HD int dof_row(int kind, int dof) const { return ahead(pairs) + kind * dofs + dof; }
  HD int tie(int i) const { return dof_row(kDofRows, 0) + i; }
  HD int bond(int i) const { return tie(ties) + 3 * i; }
  /// The state at the beginning of the last step, for whoever asks for its contact problem: pose of a free base (7), then v, q,
  /// qw, what rounding took from the pose (0 in double, which has the same layout, so that states go from one number type to the other)
  /// and what the step before owed, per dof.
  HD int base() const { return bond(bonds); }
  HD int velocity(int dof) const { return base() + 7 + dof; }
  HD int position(int dof) const { return base() + 7 + dofs + dof; }
  HD int quaternion(int dof) const { return base() + 7 + 2 * dofs + dof; }
  HD int owed(int dof) const { return base() + 7 + 3 * dofs + dof; }
  HD int began_low(int dof) const { return base() + 7 + 4 * dofs + dof; }
  /// Of the pose at the end of the last step: what rounding took from it, and it, by which a change is known, but for qw.
  HD int low(int dof) const { return base() + 7 + 5 * dofs + dof; }
  HD int end(int dof) const { return low(dofs + dof); }
  /// What that step owes the next, and the velocity at its end, by which a change is known.
  HD int owing(int dof) const { return low(2 * dofs) + dof; }
  HD int end_velocity(int dof) const { return owing(dofs + dof); }
  /// What each_coordinate calls k.
  HD int coordinate(int dof, int k) const { return k < 0 ? quaternion(dof) : position(dof + k); }
  HD int reals() const { return owing(2 * dofs); }
};

/// Impulses of the last step for the contacts of this one, matched by candidate; the record of every slot.
template <class L, class Real = typename L::Real>
struct Records {
  using Model = typename L::Model;
  using Group = typename L::Group;
  Real* real;  // of this pack or world

  HD_ONCE void warm_start(const Group& g, const Model& m, const Contacts<L>& contacts, const ContactProblem<L>& problem,
                          bool warm, Impulses<L>& l) const {
    lies_in_memory(m, *real), lies_in_lane<typename L::Shape>(*this, contacts, problem, l);
    RecordLayout<Model> layout(m);
    Real zero(0);
    Vec3<Real> none{zero, zero, zero};
    auto find = [&](int id, int slot, const ContactPoint<Real>& x, SixVec<Real>& found) {
      const Mask<Real> is = x.active & (real[id] == x.id);
      if (!any(is)) return;
      const Real* r = real + slot;
      found.l = select(is, Vec3<Real>{r[kRecordT1], r[kRecordT2], r[kRecordN]}, found.l);
      if (m.has_spin) found.c = select(is, Vec3<Real>{r[kRecordSpin], r[kRecordSpin + 1], r[kRecordSpin + 2]}, found.c);
      const Real turns(kFrameTurns), &before = r[kRecordNz], &now = x.frame.row[2].z;
      const Mask<Real> other = is & (((before < turns) & (now >= turns)) | ((before >= turns) & (now < turns)));
      if (!any(other)) return;  // tangents are the same but for how far the normal has turned
      const Mat3<Real> frame = frame_of_normal(Vec3<Real>{r[kRecordNx], r[kRecordNy], before});
      auto turned = [&](Vec3<Real>& a) { a = select(other, x.frame * transposed_times(frame, a), a); };
      turned(found.l);
      if (m.has_spin) turned(found.c);
    };
    auto in_cone = [&](const ContactPoint<Real>& x, Vec3<Real> couple) {
      const Vec3<Real> arms = spin_arms(x);
      auto over = [&](Real c, Real arm) { return select(arm > zero, c / select(arm > zero, arm, Real(1)), zero); };
      return Vec3<Real>{over(couple.x, arms.x), over(couple.y, arms.y), over(couple.z, arms.z)};
    };
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      int base = limb.first_slot();
      for (int s = 0; s <= limb.links(); ++s)
        each_station_slot<L>(limb, at, s, contacts, [&](int c) {
          const ContactPoint<Real>& x = contacts.point.slot[c];
          SixVec<Real> found{none, none};
          for (int o = base + limb.slot_begin(s); warm && o < base + limb.slot_end(s); ++o)
            find(layout.slot_id(o), layout.slot(o), x, found);
          l.slot.slot[c] = found.l;
          if (m.has_spin) l.spin.slot[c] = in_cone(x, found.c);
        });
    });
    for (int s = 0; s < contacts.pairs; ++s) {
      const ContactPoint<Real>& x = contacts.pair[s].point;
      SixVec<Real> found{none, none};
      if (warm)
        for (int o = 0; o < layout.pairs; ++o) find(layout.pair_id(o), layout.pair(o), x, found);
      l.pair[s] = found.l;
      if (m.has_spin) l.pair_spin[s] = in_cone(x, found.c);
    }
    for (int kind = 0; kind < kDofRows; ++kind)
      if (has_rows(m, kind))
        each_joint<L>(
            g, m,
            [&](const auto& link, const ScalarRow<Real>& row, int live, Real& f) {
              if (!live) return;
              const Real old = warm ? real[layout.dof_row(kind, link.dof)] * row.sign : zero;
              // The sign tells which end of a range it was: an impulse at the other end is no warm start.
              f = select(row.active, kind == kLimitRow ? max(old, zero) : old, zero);
            },
            problem.dof[kind].row, problem.dof[kind].live, l.dof[kind]);
    for (int i = 0; i < m.ties; ++i)
      l.tie[i] =
          warm ? select(problem.tie[i].active,
                        clamp(real[layout.tie(i)] * problem.tie[i].sign, problem.tie[i].lower, problem.tie[i].upper),
                        zero)
               : zero;
    for (int i = 0; i < m.bonds; ++i) {
      const Real* r = real + layout.bond(i);
      l.bond[i] = warm ? Vec3<Real>{r[0], r[1], r[2]} : none;
    }
  }

  /// Contacts with their impulses and couples (SixVec): slot_impulse(place among the lane's slots), pair_impulse(pair).
  template <class SlotImpulse, class PairImpulse>
  HD void store_contacts(const Group& g, const Model& m, const Kinematics<L>& kin, const Contacts<L>& contacts,
                         SlotImpulse slot_impulse, PairImpulse pair_impulse) const {
    RecordLayout<Model> layout(m);
    auto put = [&](Real& id, Real* r, const ContactPoint<Real>& x, const SixVec<Real>& push, Vec3<Real> p) {
      const Vec3<Real>& f = push.l;
      Vec3<Real> n = x.frame.row[2];
      if (m.has_spin) {
        const Vec3<Real> couple = times(push.c, spin_arms(x));
        r[kRecordSpin] = couple.x, r[kRecordSpin + 1] = couple.y, r[kRecordSpin + 2] = couple.z;
      }
      id = select(x.active, x.id, Real(-1));
      r[kRecordT1] = f.x, r[kRecordT2] = f.y, r[kRecordN] = f.z, r[kRecordGap] = x.gap, r[kRecordMu] = x.mu;
      r[kRecordX] = p.x, r[kRecordY] = p.y, r[kRecordZ] = p.z, r[kRecordNx] = n.x, r[kRecordNy] = n.y,
      r[kRecordNz] = n.z;
    };
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      const int first = limb.first_slot();
      for (int c = 0; c < limb.slots(); ++c) real[layout.slot_id(first + c)] = Real(-1);
      contacts.live.each(at.slot, at.slot + limb.slots(), [&](int c) {  // halfway between both surfaces
        const ContactPoint<Real>& x = contacts.point.slot[c];
        const Vec3<Real> below = x.frame.row[2] * (max(x.gap, Real(0)) * Scalar<Real>(0.5));
        const int to = first + c - at.slot;
        put(real[layout.slot_id(to)], real + layout.slot(to), x, slot_impulse(c),
            x.p - below + kin.limb_origin[at.limb]);
      });
    });
    if (g.rank() == 0) {
      for (int s = 0; s < layout.pairs; ++s) {
        Real &id = real[layout.pair_id(s)], *r = real + layout.pair(s);
        if (s >= contacts.pairs) {
          id = Real(-1);
          continue;
        }
        const PairContact<L>& c = contacts.pair[s];
        put(id, r, c.point, pair_impulse(s), c.at + kin.trunk_origin);
        Real* ahead = real + layout.ahead(s);
        ahead[0] = c.ahead.x, ahead[1] = c.ahead.y, ahead[2] = c.ahead.z;
        for (int w = 0; w < kWidth<Real>; ++w) {
          set_lane(r[kRecordGeom1], w, static_cast<Scalar<Real>>(lane(c.geom1, w)));
          set_lane(r[kRecordGeom2], w, static_cast<Scalar<Real>>(lane(c.geom2, w)));
        }
      }
    }
  }

  HD_ONCE void store(const Group& g, const Model& m, const Kinematics<L>& kin, const Contacts<L>& contacts,
                     const ContactProblem<L>& problem, const Impulses<L>& l) const {
    lies_in_memory(m, *real), lies_in_lane<typename L::Shape>(*this, kin, contacts, problem, l);
    RecordLayout<Model> layout(m);
    const Vec3<Real> none{Real(0), Real(0), Real(0)};
    store_contacts(
        g, m, kin, contacts, [&](int c) { return SixVec<Real>{l.slot.slot[c], m.has_spin ? l.spin.slot[c] : none}; },
        [&](int s) { return SixVec<Real>{l.pair[s], m.has_spin ? l.pair_spin[s] : none}; });
    if (g.rank() == 0) {
      for (int i = 0; i < m.ties; ++i)
        real[layout.tie(i)] = problem.tie_live[i] ? l.tie[i] * problem.tie[i].sign : Real(0);
      for (int i = 0; i < m.bonds; ++i) {
        Real* r = real + layout.bond(i);
        r[0] = l.bond[i].x, r[1] = l.bond[i].y, r[2] = l.bond[i].z;
      }
    }
    for (int kind = 0; kind < kDofRows; ++kind)
      if (has_rows(m, kind))
        each_joint<L>(
            g, m,
            [&](const auto& link, const ScalarRow<Real>& row, int live, Real f) {
              real[layout.dof_row(kind, link.dof)] = live ? f * row.sign : Real(0);
            },
            problem.dof[kind].row, problem.dof[kind].live, l.dof[kind]);
  }
};

/// touch(dof, v, owed) for all dofs.
template <class L, class Touch>
HD void each_velocity(const typename L::Group& g, const typename L::Model& m, State<L>& x, Touch touch) {
  using Real = typename L::Real;
  if (m.free_base())
    for (int t = 0; t < 6; ++t) touch(m.trunk[0].dof + t, x.v.trunk[t], x.owed.trunk[t]);
  each_joint<L>(g, m, [&](const auto& link, Real& v, Real& owed) { touch(link.dof, v, owed); }, x.v, x.owed);
}

/// touch(dof, x, low) for all dofs: the number of the pose next to a dof's low part, of quaternions all but w.
template <class L, class Touch>
HD void each_compensated(const typename L::Group& g, const typename L::Model& m, State<L>& x, Touch touch) {
  using Real = typename L::Real;
  if (m.free_base()) {
    const int d = m.trunk[0].dof;
    Real* low = x.low.trunk;
    touch(d, x.orientation.x, low[0]), touch(d + 1, x.orientation.y, low[1]), touch(d + 2, x.orientation.z, low[2]);
    touch(d + 3, x.position.x, low[3]), touch(d + 4, x.position.y, low[4]), touch(d + 5, x.position.z, low[5]);
  }
  each_joint<L>(g, m, [&](const auto& link, const Real& q, Real& low) { touch(link.dof, q, low); }, x.q, x.low);
}

/// The state, kept in a record, and back.
template <class L, class Real, class Touch>
HD void each_state_entry(const typename L::Group& g, const typename L::Model& m, State<L>& x, Real* record,
                         Touch touch) {
  RecordLayout<typename L::Model> layout(m);
  if (m.free_base()) {
    Real* r = record + layout.base();
    touch(x.position.x, r[0]), touch(x.position.y, r[1]), touch(x.position.z, r[2]);
    touch(x.orientation.w, r[3]), touch(x.orientation.x, r[4]), touch(x.orientation.y, r[5]),
        touch(x.orientation.z, r[6]);
  }
  each_joint<L>(
      g, m,
      [&](const auto& link, Real& q, Real& qw) {
        touch(q, record[layout.position(link.dof)]);
        if (link.kind == kBallLink) touch(qw, record[layout.quaternion(link.dof)]);
      },
      x.q, x.qw);
  each_compensated<L>(g, m, x, [&](int dof, const Real&, Real& low) { touch(low, record[layout.began_low(dof)]); });
  each_velocity<L>(g, m, x, [&](int dof, Real& v, Real& owed) {
    touch(v, record[layout.velocity(dof)]), touch(owed, record[layout.owed(dof)]);
  });
}

/// What the last step left besides the state: the low part of a pose that nobody has written since, and what it owes where
/// velocities are as they were, too. 0 for all of a world where somebody has written, for what is computed from a state that is
/// written is not to depend on what was there before.
template <class L, class Real>
HD void load_rest(const typename L::Group& g, const typename L::Model& m, const Real* record, State<L>& x) {
  const RecordLayout<typename L::Model> layout(m);
  const Real zero(0), one(1);
  Real moved(0), changed(0);
  each_compensated<L>(g, m, x, [&](int dof, const Real& q, Real& low) {
    if constexpr (kCompensated<Real>) low = record[layout.low(dof)];
    moved = select(q == record[layout.end(dof)], moved, one);
  });
  each_velocity<L>(g, m, x, [&](int dof, const Real& v, Real& owed) {
    owed = record[layout.owing(dof)];
    changed = select(v == record[layout.end_velocity(dof)], changed, one);
  });
  const Mask<Real> stands = g.max(moved) == zero, kept = stands & (g.max(changed) == zero);
  if constexpr (kCompensated<Real>)
    each_compensated<L>(g, m, x, [&](int, const Real&, Real& low) { low = select(stands, low, zero); });
  each_velocity<L>(g, m, x, [&](int, const Real&, Real& owed) { owed = select(kept, owed, zero); });
}
template <class L, class Real>
HD void store_rest(const typename L::Group& g, const typename L::Model& m, State<L>& x, Real* record) {
  const RecordLayout<typename L::Model> layout(m);
  each_compensated<L>(
      g, m, x, [&](int dof, const Real& q, Real& low) { record[layout.low(dof)] = low, record[layout.end(dof)] = q; });
  each_velocity<L>(g, m, x, [&](int dof, const Real& v, Real& owed) {
    record[layout.owing(dof)] = owed, record[layout.end_velocity(dof)] = v;
  });
}

}  // namespace stiction
