#pragma once

#include <algorithm>

#include "kernels/simd.hpp"

namespace attn::kernels {

/// kLanes 16-bit numbers, each widened to 32 bits with its sign.
template <class Arch>
[[gnu::always_inline]] inline IntVec<Arch> load_i16(const std::uint16_t* p) {
#if defined(__wasm_simd128__)
  if constexpr (kIsWasm<Arch>) return IntVec<Arch>(wasm_i32x4_load16x4(p));
#endif
  alignas(64) std::int32_t wide[kLanes<Arch>];
  for (int i = 0; i < kLanes<Arch>; ++i) wide[i] = static_cast<std::int16_t>(p[i]);
  return IntVec<Arch>::load_aligned(wide);
}

/// The low 16 bits of each lane.
template <class Arch>
[[gnu::always_inline]] inline void store_u16(std::uint16_t* p, IntVec<Arch> x) {
  alignas(64) std::int32_t wide[kLanes<Arch>];
  x.store_aligned(wide);
  for (int i = 0; i < kLanes<Arch>; ++i) p[i] = static_cast<std::uint16_t>(wide[i]);
}

template <class Arch>
[[gnu::always_inline]] inline IntVec<Arch> half_mask() {
  return as_int<Arch>(loop_constant<Arch, 0x8FFFE000U>());
}

/// What float16 bits (sign-extended) give as float32 bits when they are only shifted into place: 2^-112 times the number, if it is finite.
/// `mask` is half_mask(), made before the loop.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> shifted_half(IntVec<Arch> bits, IntVec<Arch> mask) {
  return as_float<Arch>((bits << 13) & mask);
}

/// float16 bits (sign-extended) of finite numbers to float32. Made before the loop.
template <class Arch>
struct FiniteHalfToFloat {
  IntVec<Arch> mask = half_mask<Arch>();
  Vec<Arch> missing = loop_constant<Arch, bits_of(0x1p112F)>();
  [[gnu::always_inline]] Vec<Arch> operator()(IntVec<Arch> bits) const { return shifted_half<Arch>(bits, mask) * missing; }
};

/// float16 bits (sign-extended) to float32, exact for all 65,536 patterns: shifted into place, the exponent is 112 too small, which a
/// multiplication by 2^112 mends for normal and subnormal numbers alike; infinity and NaN get their all-ones exponent back.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> half_to_float(IntVec<Arch> bits) {
  using I = IntVec<Arch>;
  const I scaled = as_int<Arch>(FiniteHalfToFloat<Arch>{}(bits));
  const I exponent(0x7C00);
  const auto special = (bits & exponent) == exponent;
  return as_float<Arch>(scaled | xsimd::select(special, I(0x7F800000), I(0)));
}

/// The same for one number.
inline float half_to_float_one(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7FFFU;
  std::uint32_t bits = magnitude << 13;
  float finite;
  std::memcpy(&finite, &bits, sizeof finite);
  finite *= 0x1p112F;
  if (magnitude < 0x7C00U) {
    std::memcpy(&bits, &finite, sizeof bits);
  } else {
    bits |= 0x7F800000U;
  }
  bits |= (half & 0x8000U) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// float32 to float16 bits, rounded to nearest, ties to even; beyond 65,504 (from 65,520 on) infinity; NaN stays NaN.
template <class Arch>
[[gnu::always_inline]] inline IntVec<Arch> float_to_half(Vec<Arch> x) {
  using I = IntVec<Arch>;
  const I bits = as_int<Arch>(x);
  const I magnitude = bits & I(0x7FFFFFFF);
  const I sign = (bits >> 16) & I(0x8000);
  // Normal: rebias the exponent, add just under half a unit plus the lowest kept bit, cut.
  const I odd = (magnitude >> 13) & I(1);
  const I normal = (magnitude - I((127 - 15) << 23) + I(0xFFF) + odd) >> 13;
  // Subnormal: adding 0.5 makes the adder round at 2^-24, the unit of float16's subnormals.
  const I subnormal = as_int<Arch>(as_float<Arch>(magnitude) + Vec<Arch>(0.5F)) - I(0x3F000000);
  const I special = xsimd::select(magnitude > I(0x7F800000), I(0x7E00), I(0x7C00));
  I half = xsimd::select(magnitude < I((127 - 14) << 23), subnormal, normal);
  half = xsimd::select(magnitude > I(0x477FEFFF), special, half);
  return half | sign;
}

/// kLanes keys or values as float32, from either storage.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> load_kv(const float* p) {
  return load<Arch>(p);
}
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> load_kv(const std::uint16_t* p) {
  return half_to_float<Arch>(load_i16<Arch>(p));
}

/// What `LoadScaled` leaves out: a number is kScale<T> times what it loads.
template <class T>
inline constexpr float kScale = 1.0F;
template <>
inline constexpr float kScale<std::uint16_t> = 0x1p112F;

/// Loads kLanes keys or values where each step counts: float32 as it is; of finite float16 what shifting gives, 1 / kScale of the number.
/// Made before the loop.
template <class Arch, class T>
struct LoadScaled;
template <class Arch>
struct LoadScaled<Arch, float> {
  [[gnu::always_inline]] Vec<Arch> operator()(const float* p) const { return load<Arch>(p); }
};
template <class Arch>
struct LoadScaled<Arch, std::uint16_t> {
  IntVec<Arch> mask = half_mask<Arch>();
  [[gnu::always_inline]] Vec<Arch> operator()(const std::uint16_t* p) const { return shifted_half<Arch>(load_i16<Arch>(p), mask); }
};
/// One key or value as float32.
inline float float_one(const float* p) { return *p; }
inline float float_one(const std::uint16_t* p) { return half_to_float_one(*p); }

/// True if all num_rows x width elements are finite: without its sign, a half that is not has bits from 0x7C00 on.
template <class Arch>
ATTN_KERNEL inline bool all_finite(const std::uint16_t* rows, std::ptrdiff_t stride, int num_rows, int width) {
  using H = xsimd::batch<std::uint16_t, Arch>;
  constexpr int kWide = static_cast<int>(H::size);
  const H magnitude = xsimd::bitwise_cast<std::uint16_t>(loop_constant<Arch, 0x7FFF7FFFU>());
  H largest(0);
  std::uint16_t rest = 0;
  for (int j = 0; j < num_rows; ++j) {
    const std::uint16_t* x = rows + j * stride;
    int c = 0;
    for (; c + kWide <= width; c += kWide) largest = xsimd::max(largest, H::load_unaligned(x + c) & magnitude);
    for (; c < width; ++c) rest = std::max<std::uint16_t>(rest, x[c] & 0x7FFF);
  }
  alignas(64) std::uint16_t lanes[kWide];
  largest.store_aligned(lanes);
  for (const std::uint16_t lane : lanes) rest = std::max(rest, lane);
  return rest < 0x7C00;
}

/// `count` halves in a row as float32. `Finite`: none of them is infinite or NaN.
template <class Arch, bool Finite = false>
ATTN_KERNEL inline void half_to_float_row(const std::uint16_t* source, float* target, std::ptrdiff_t count) {
  constexpr int kW = kLanes<Arch>;
  const FiniteHalfToFloat<Arch> finite;
  std::ptrdiff_t i = 0;
  for (; i + kW <= count; i += kW) {
    store<Arch>(target + i, Finite ? finite(load_i16<Arch>(source + i)) : load_kv<Arch>(source + i));
  }
  if (i == count) return;
  std::uint16_t in[kW] = {};
  alignas(64) float out[kW];
  for (std::ptrdiff_t t = i; t < count; ++t) in[t - i] = source[t];
  store<Arch>(out, half_to_float<Arch>(load_i16<Arch>(in)));
  for (std::ptrdiff_t t = i; t < count; ++t) target[t] = out[t - i];
}

template <class Arch>
ATTN_KERNEL inline void float_to_half_row(const float* source, std::uint16_t* target, std::ptrdiff_t count) {
  constexpr int kW = kLanes<Arch>;
  std::ptrdiff_t i = 0;
  for (; i + kW <= count; i += kW) store_u16<Arch>(target + i, float_to_half<Arch>(load<Arch>(source + i)));
  if (i == count) return;
  alignas(64) float in[kW] = {};
  std::uint16_t out[kW];
  for (std::ptrdiff_t t = i; t < count; ++t) in[t - i] = source[t];
  store_u16<Arch>(out, float_to_half<Arch>(load<Arch>(in)));
  for (std::ptrdiff_t t = i; t < count; ++t) target[t] = out[t - i];
}

}  // namespace attn::kernels
