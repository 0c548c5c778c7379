#pragma once

#include "kernels/simd.hpp"

namespace attn::kernels {

/// exp(x) for x <= 0, lane by lane; NaN stays NaN, -inf gives exactly 0. Made before a loop, it holds the constants that the loop needs.
///
/// x = n ln 2 + r with n an integer and |r| <= ln 2 / 2, so that exp(x) = 2^n exp(r). n is found by adding 1.5 * 2^23, which leaves
/// it in the low bits of the sum; with 127 added as well these bits are the exponent of 2^n. n ln 2 is subtracted in two parts, the first of
/// which is exact (Cody and Waite). exp(r) is a polynomial of degree 5, minimax in relative error (1.05e-7) with p(0) = p'(0) = 1, added up
/// by Estrin's scheme: as many steps as by Horner's, in a chain of two thirds of its length, which is what the softmax waits for.
/// Below -87.7 (n = -127) the exponent is 0 and so is the result. Relative error above that: below 3e-7.
template <class Arch>
class ExpNonPositive {
  using V = Vec<Arch>;

 public:
  /// exp(x) = power * exp(rest)
  struct Parts {
    V power;
    V rest;
  };

  [[gnu::always_inline]] Parts reduce(V x) const {
    x = max_keep_nan<Arch>(x, lowest_);
    const V shifted = madd<Arch>(x, log2_e_, shift_);
    const V n = shifted - shift_;
    const V r = nmadd<Arch>(n, ln2_high_, x);
    return {as_float<Arch>(as_int<Arch>(shifted) << 23), nmadd<Arch>(n, ln2_low_, r)};
  }

  [[gnu::always_inline]] V expand(Parts x) const {
    const V r = x.rest;
    const V r2 = r * r;
    const V high = madd<Arch>(c5_, r, c4_);
    const V low = madd<Arch>(c3_, r, c2_);
    const V exp_minus_1 = madd<Arch>(madd<Arch>(high, r2, low), r2, r);
    return madd<Arch>(exp_minus_1, x.power, x.power);
  }

  [[gnu::always_inline]] V operator()(V x) const { return expand(reduce(x)); }

 private:
  V lowest_ = loop_constant<Arch, bits_of(-88.0F)>();
  V log2_e_ = loop_constant<Arch, bits_of(1.44269504F)>();
  V shift_ = loop_constant<Arch, bits_of(12582912.0F + 127.0F)>();  // 1.5 * 2^23 + exponent bias
  V ln2_high_ = loop_constant<Arch, bits_of(0.693359375F)>();       // 10 significant bits: n * ln2_high is exact for |n| < 2^14
  V ln2_low_ = loop_constant<Arch, bits_of(-2.12194440e-4F)>();
  V c5_ = loop_constant<Arch, bits_of(0.008312501944601536F)>();
  V c4_ = loop_constant<Arch, bits_of(0.041890330612659454F)>();
  V c3_ = loop_constant<Arch, bits_of(0.16667115688323975F)>();
  V c2_ = loop_constant<Arch, bits_of(0.499992311000824F)>();
};

}  // namespace attn::kernels
