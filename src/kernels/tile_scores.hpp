#pragma once

#include "kernels/simd.hpp"

// What happens to a tile of scores between q·k and the softmax: soft cap, ALiBi, bias, and hiding. All functions work in place on
// scores_t [num_keys][stride], keys down, queries across in whole vectors (`columns` is a multiple of kLanes).

namespace attn::kernels {

/// x -> softcap * tanh(x / softcap); infinite scores become +-softcap, NaN stays NaN.
/// The argument is cut to +-20, where tanh is 1 in float32: xsimd 13.2's tanh is NaN at infinity on wasm.
template <class Arch>
ATTN_KERNEL inline void softcap_tile(float* scores_t, std::ptrdiff_t stride, int num_keys, int columns, float softcap) {
  using V = Vec<Arch>;
  const V cap(softcap);
  const V inverse(1.0F / softcap);
  for (int j = 0; j < num_keys; ++j) {
    for (int c = 0; c < columns; c += kLanes<Arch>) {
      float* s = scores_t + j * stride + c;
      const V x = load<Arch>(s);
      const V cut = xsimd::min(xsimd::max(x * inverse, V(-20.0F)), V(20.0F));
      store<Arch>(s, xsimd::select(x == x, cap * xsimd::tanh(cut), x));
    }
  }
}

/// x -> x - slope[c] * |position[c] - key|, for keys first_key, first_key + 1, ...
template <class Arch>
ATTN_KERNEL inline void alibi_tile(float* scores_t, std::ptrdiff_t stride, int num_keys, int columns, int first_key, const float* position,
                                   const float* slope) {
  using V = Vec<Arch>;
  for (int j = 0; j < num_keys; ++j) {
    const V key(static_cast<float>(first_key + j));
    for (int c = 0; c < columns; c += kLanes<Arch>) {
      float* s = scores_t + j * stride + c;
      const V distance = xsimd::abs(load<Arch>(position + c) - key);
      store<Arch>(s, load<Arch>(s) - load<Arch>(slope + c) * distance);
    }
  }
}

/// x -> x + bias, and -inf where bias is -inf, whatever x is. `bias_t` has the tile's layout.
template <class Arch>
ATTN_KERNEL inline void bias_tile(float* scores_t, std::ptrdiff_t stride, int num_keys, int columns, const float* bias_t,
                                  std::ptrdiff_t bias_stride) {
  using V = Vec<Arch>;
  const V hidden(-kInfinity);
  for (int j = 0; j < num_keys; ++j) {
    for (int c = 0; c < columns; c += kLanes<Arch>) {
      float* s = scores_t + j * stride + c;
      const V b = load<Arch>(bias_t + j * bias_stride + c);
      store<Arch>(s, xsimd::select(b == hidden, hidden, load<Arch>(s) + b));
    }
  }
}

/// x -> -inf for keys outside begin[c] <= key < end[c].
template <class Arch>
ATTN_KERNEL inline void range_tile(float* scores_t, std::ptrdiff_t stride, int num_keys, int columns, int first_key,
                                   const std::int32_t* begin, const std::int32_t* end) {
  using V = Vec<Arch>;
  using I = IntVec<Arch>;
  const I hidden = as_int<Arch>(V(-kInfinity));
  for (int j = 0; j < num_keys; ++j) {
    const I key(first_key + j);
    for (int c = 0; c < columns; c += kLanes<Arch>) {
      float* s = scores_t + j * stride + c;
      const auto seen = (key >= I::load_unaligned(begin + c)) & (key < I::load_unaligned(end + c));
      store<Arch>(s, as_float<Arch>(xsimd::select(seen, as_int<Arch>(load<Arch>(s)), hidden)));
    }
  }
}

/// True if all num_keys x width elements are finite: x * 0 is NaN for NaN and infinity, and NaN stays in a sum.
template <class Arch>
ATTN_KERNEL inline bool all_finite(const float* rows, std::ptrdiff_t stride, int num_rows, int width) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  const V zero(0.0F);
  V sum(0.0F);
  float rest = 0.0F;
  for (int j = 0; j < num_rows; ++j) {
    const float* x = rows + j * stride;
    int c = 0;
    for (; c + kW <= width; c += kW) sum += load<Arch>(x + c) * zero;
    for (; c < width; ++c) rest += x[c] * 0.0F;
  }
  return xsimd::all(sum == zero) && rest == 0.0F;
}

}  // namespace attn::kernels
