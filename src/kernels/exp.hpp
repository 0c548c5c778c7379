#pragma once

#include "kernels/simd.hpp"

namespace attn::kernels {

/// exp(x) for x <= 0, lane by lane; NaN stays NaN, -inf gives exactly 0.
///
/// x = n ln 2 + r with n an integer and |r| <= ln 2 / 2, so that exp(x) = 2^n exp(r). n is found by adding 1.5 * 2^23, which leaves
/// it in the low bits of the sum; with 127 added as well these bits are the exponent of 2^n. n ln 2 is subtracted in two parts, the first of
/// which is exact (Cody and Waite). exp(r) is a polynomial of degree 5, minimax in relative error (1.05e-7) with p(0) = p'(0) = 1.
/// Below -87.7 (n = -127) the exponent is 0 and so is the result. Relative error above that: below 2.5e-7.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> exp_nonpositive(Vec<Arch> x) {
  using V = Vec<Arch>;
  constexpr float kLog2E = 1.44269504F;
  constexpr float kShift = 12582912.0F + 127.0F;  // 1.5 * 2^23 + exponent bias
  constexpr float kLn2High = 0.693359375F;        // 10 significant bits: n * kLn2High is exact for |n| < 2^14
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kLowest = -88.0F;

  x = max_keep_nan<Arch>(x, V(kLowest));
  const V shifted = madd<Arch>(x, V(kLog2E), V(kShift));
  const V n = shifted - V(kShift);
  V r = nmadd<Arch>(n, V(kLn2High), x);
  r = nmadd<Arch>(n, V(kLn2Low), r);
  V p = madd<Arch>(V(0.008312501944601536F), r, V(0.041890330612659454F));
  p = madd<Arch>(p, r, V(0.16667115688323975F));
  p = madd<Arch>(p, r, V(0.499992311000824F));
  p = madd<Arch>(p, r, V(1.0F));
  p = madd<Arch>(p, r, V(1.0F));
  const V power = as_float<Arch>(as_int<Arch>(shifted) << 23);
  return p * power;
}

}  // namespace attn::kernels
