// From records to the contact arrays users read, one environment at a time; the same on the host and on a device.
#pragma once
#include "step/records.h"

namespace stiction {

/// Row-major (num_envs, max_contacts, ...). n points from geom[0] to geom[1]; impulse (t1, t2, n) acts on geom[1].
template <class T>
struct ContactArrays {
  int* geom;                        // (N, C, 2), -1 where there is none
  T *pos, *frame, *dist, *impulse;  // (N, C, 3), (N, C, 3, 3), (N, C), (N, C, 3)   m, rows t1 t2 n, m, N s
  T* couple;                        // (N, C, 3)  of the impulse, about t1, t2, n         N m s
  T* ahead;         // (N, C, 3)  from where geom[0] touches to where geom[1] does, across n, world axes   m
  uint8_t* active;  // (N, C)
  int* count;       // (N,)
  T* net_force;     // (N, nbody, 3)  impulse / h of the last step, world axes             N
  T inverse_h;
};

/// Whom to look at without stepping, and where to write what is there.
template <class T>
struct FoundContacts {
  ContactArrays<T> arrays;
  int capacity;         // contacts per world in them
  const uint8_t* mask;  // (N,) worlds to look at; null: all

  HD bool wants(int world) const { return mask == nullptr || mask[world] != 0; }
};

/// Contacts in the order of slots; those beyond `capacity` are left out (they still push).
template <class Model, class Record, class T>
HD void export_contacts(const Model& m, int64_t env, Record record, int capacity, const ContactArrays<T>& out) {
  RecordLayout<Model> layout(m);
  int count = 0;
  T* net = out.net_force + env * m.nbody * 3;
  for (int i = 0; i < 3 * m.nbody; ++i) net[i] = 0;
  auto add = [&](int r, int geom1, int geom2, int ahead) {
    Vec3<T> n{record(r + kRecordNx), record(r + kRecordNy), record(r + kRecordNz)};
    Mat3<T> F = frame_of_normal(n);
    Vec3<T> l{record(r + kRecordT1), record(r + kRecordT2), record(r + kRecordN)},
        f = transposed_times(F, l) * out.inverse_h;
    for (int side = 0; side < 2; ++side) {
      T *to = net + 3 * m.geom[side ? geom2 : geom1].body, sign = side ? T(1) : T(-1);
      to[0] += sign * f.x, to[1] += sign * f.y, to[2] += sign * f.z;
    }
    if (count == capacity) return;
    const int64_t c = env * capacity + count++;
    out.geom[2 * c] = geom1, out.geom[2 * c + 1] = geom2;
    for (int k = 0; k < 3; ++k) {
      out.pos[3 * c + k] = record(r + kRecordX + k), out.impulse[3 * c + k] = record(r + kRecordT1 + k);
      const Vec3<T>& row = F.row[k];
      out.frame[9 * c + 3 * k] = row.x, out.frame[9 * c + 3 * k + 1] = row.y, out.frame[9 * c + 3 * k + 2] = row.z;
    }
    out.dist[c] = record(r + kRecordGap), out.active[c] = 1;
    for (int k = 0; k < 3; ++k) {
      out.couple[3 * c + k] = m.has_spin ? record(r + kRecordSpin + k) : T(0);
      out.ahead[3 * c + k] = ahead < 0 ? T(0) : record(ahead + k);
    }
  };
  auto station = [&](const StationModel& st, int first_slot) {
    for (int s = 0; s < st.slots; ++s) {
      const int slot = first_slot + st.slot_begin + s, id = static_cast<int>(record(layout.slot_id(slot)));
      if (id < 0) continue;
      const SlotGeoms geoms = slot_geoms(m, st, id);  // slots' normals point from the static one
      add(layout.slot(slot), geoms.fixed, geoms.own, -1);
    }
  };
  for (int l = 0; l < m.limbs(); ++l) {
    station(m.limb[l].station, m.limb[l].first_slot);
    for (int k = 0; k < m.limb[l].links; ++k) station(m.link[m.limb[l].first_link + k].station, m.limb[l].first_slot);
  }
  for (int s = 0; s < layout.pairs; ++s) {
    const int r = layout.pair(s);
    if (record(layout.pair_id(s)) >= 0)
      add(r, static_cast<int>(record(r + kRecordGeom1)), static_cast<int>(record(r + kRecordGeom2)), layout.ahead(s));
  }
  out.count[env] = count;
  for (int64_t c = env * capacity + count; c < (env + 1) * capacity; ++c) {
    out.geom[2 * c] = out.geom[2 * c + 1] = -1, out.active[c] = 0, out.dist[c] = 0;
    for (int k = 0; k < 3; ++k)
      out.pos[3 * c + k] = out.impulse[3 * c + k] = out.couple[3 * c + k] = out.ahead[3 * c + k] = 0;
    for (int k = 0; k < 9; ++k) out.frame[9 * c + k] = 0;
  }
}

}  // namespace stiction
