// What all backends derive from a world's options alike.
#pragma once
#include "core/options.h"
#include "step/user_arrays.h"

namespace stiction {

/// The names of the certificate's arrays, in the order of CertificateField.
inline constexpr const char* kCertificateNames[kCertificateFields] = {
    "r_dyn", "r_con", "r_ccp", "r_row", "r_cone", "penetration", "scale", "num_contacts", "iterations", "converged"};

/// The options in the number type of a kernel.
template <class T>
Options<T> options_in(const Options<double>& o) {
  Options<T> to;
  to.h = T(o.h), to.implicit = o.implicit, to.explicit_damping = o.explicit_damping, to.erp = T(o.erp);
  to.max_recovery = T(o.max_recovery), to.margin = T(o.margin), to.merge = T(o.merge), to.iterations = o.iterations;
  to.penetration_allowance = T(o.penetration_allowance), to.tangential_compliance = T(o.tangential_compliance);
  to.convex = o.convex;
  to.tolerance = T(o.tolerance), to.certify = T(o.certify), to.penalty = o.penalty, to.anderson = o.anderson;
  to.relaxation = T(o.relaxation), to.tikhonov = T(o.tikhonov), to.body_split = o.body_split;
  to.warm_start = o.warm_start, to.fallback = o.fallback, to.certificates = o.certificates;
  return to;
}

}  // namespace stiction
