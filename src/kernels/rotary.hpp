#pragma once

#include "kernels/half.hpp"

// Rotary positions: pairs of elements turned by the angle of their position (attn/rotary.h). T is the type that is read, U the type that is
// written, float or the bits of float16; source and target may be the same row.

namespace attn::kernels {

template <class Arch>
[[gnu::always_inline]] inline void store_kv(float* p, Vec<Arch> x) {
  store<Arch>(p, x);
}
template <class Arch>
[[gnu::always_inline]] inline void store_kv(std::uint16_t* p, Vec<Arch> x) {
  store_u16<Arch>(p, float_to_half<Arch>(x));
}

/// The first `count` lanes (fewer than kLanes), the others 0.
template <class Arch, class T>
[[gnu::always_inline]] inline Vec<Arch> load_kv_first(const T* p, int count) {
  T lanes[kLanes<Arch>] = {};
  for (int i = 0; i < count; ++i) lanes[i] = p[i];
  return load_kv<Arch>(lanes);
}
template <class Arch, class U>
[[gnu::always_inline]] inline void store_kv_first(U* p, Vec<Arch> x, int count) {
  U lanes[kLanes<Arch>];
  store_kv<Arch>(lanes, x);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
}

/// Lane i takes lane i ^ 1.
struct OtherOfPair {
  static constexpr std::uint32_t get(std::uint32_t index, std::uint32_t /*size*/) { return index ^ 1U; }
};

/// Swaps the neighbours of each pair of lanes.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> swap_pairs(Vec<Arch> x) {
  return xsimd::swizzle(x, xsimd::make_batch_constant<std::uint32_t, Arch, OtherOfPair>());
}

/// Copies a row, converted where the types differ.
template <class Arch, class T, class U>
inline void copy_kv_row(const T* x, U* y, std::ptrdiff_t count) {
  constexpr int kW = kLanes<Arch>;
  std::ptrdiff_t i = 0;
  for (; i + kW <= count; i += kW) store_kv<Arch>(y + i, load_kv<Arch>(x + i));
  if (i < count) {
    const int rest = static_cast<int>(count - i);
    store_kv_first<Arch>(y + i, load_kv_first<Arch>(x + i, rest), rest);
  }
}

/// Halves: pairs (i, i + half).
template <class Arch, class T, class U>
inline void rotate_row_halves(const T* x, U* y, const float* cos, const float* sin, int half) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  int i = 0;
  for (; i + kW <= half; i += kW) {
    const V c = load<Arch>(cos + i);
    const V s = load<Arch>(sin + i);
    const V a = load_kv<Arch>(x + i);
    const V b = load_kv<Arch>(x + half + i);
    store_kv<Arch>(y + i, nmadd<Arch>(b, s, a * c));
    store_kv<Arch>(y + half + i, madd<Arch>(a, s, b * c));
  }
  if (i < half) {
    const int rest = half - i;
    const V c = load_kv_first<Arch>(cos + i, rest);
    const V s = load_kv_first<Arch>(sin + i, rest);
    const V a = load_kv_first<Arch>(x + i, rest);
    const V b = load_kv_first<Arch>(x + half + i, rest);
    store_kv_first<Arch>(y + i, nmadd<Arch>(b, s, a * c), rest);
    store_kv_first<Arch>(y + half + i, madd<Arch>(a, s, b * c), rest);
  }
}

/// One vector of pairs (2i, 2i + 1): y = x * (c, c) + swapped x * (-s, s).
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> rotate_pairs(Vec<Arch> x, Vec<Arch> cos_pairs, Vec<Arch> sin_pairs) {
  return madd<Arch>(swap_pairs<Arch>(x), sin_pairs, x * cos_pairs);
}

/// Interleaved: pairs (2i, 2i + 1).
template <class Arch, class T, class U>
inline void rotate_row_interleaved(const T* x, U* y, const float* cos, const float* sin, int half) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  int i = 0;
  for (; i + kW <= half; i += kW) {
    const V c = load<Arch>(cos + i);
    const V s = load<Arch>(sin + i);
    const V a = load_kv<Arch>(x + 2 * i);
    const V b = load_kv<Arch>(x + 2 * i + kW);
    store_kv<Arch>(y + 2 * i, rotate_pairs<Arch>(a, xsimd::zip_lo(c, c), xsimd::zip_lo(-s, s)));
    store_kv<Arch>(y + 2 * i + kW, rotate_pairs<Arch>(b, xsimd::zip_hi(c, c), xsimd::zip_hi(-s, s)));
  }
  for (; i < half; ++i) {
    // One pair through the same instructions, so that a width that is no multiple of a vector rounds the same.
    const V a = load_kv_first<Arch>(x + 2 * i, 2);
    float c[static_cast<std::size_t>(kW)] = {cos[i], cos[i]};
    float s[static_cast<std::size_t>(kW)] = {-sin[i], sin[i]};
    store_kv_first<Arch>(y + 2 * i, rotate_pairs<Arch>(a, load<Arch>(c), load<Arch>(s)), 2);
  }
}

/// One row of head_dim elements; cos and sin have rotary_dim / 2.
template <class Arch, class T, class U>
inline void rotate_row(const T* x, U* y, const float* cos, const float* sin, int rotary_dim, bool interleaved, int head_dim) {
  if (interleaved) {
    rotate_row_interleaved<Arch>(x, y, cos, sin, rotary_dim / 2);
  } else {
    rotate_row_halves<Arch>(x, y, cos, sin, rotary_dim / 2);
  }
  if (static_cast<const void*>(x) != static_cast<const void*>(y)) copy_kv_row<Arch>(x + rotary_dim, y + rotary_dim, head_dim - rotary_dim);
}

}  // namespace attn::kernels
