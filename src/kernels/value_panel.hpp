#pragma once

#include "kernels/weighted_sum.hpp"

// Values in panels: panel p holds columns [p * kPanel, (p + 1) * kPanel) of all keys, as [key][kPanel], panel_stride floats from the next one.
// A kernel that goes down a panel reads line after line; down two columns of the rows as they lie, it touches a cache line for each key and
// uses a part of it (measured: 5 to 10 % slower).

namespace attn::kernels {

/// Copies num_keys value rows into panels; columns beyond value_dim are 0.
template <class Arch>
ATTN_KERNEL inline void pack_values(const float* value, std::ptrdiff_t value_stride, int num_keys, int value_dim, float* panels,
                                    std::ptrdiff_t panel_stride) {
  constexpr int kW = kLanes<Arch>;
  constexpr int kP = kPanel<Arch>;
  int c = 0;
  for (; c + kP <= value_dim; c += kP, panels += panel_stride) {
    const float* from = value + c;
    float* to = panels;
    for (int j = 0; j < num_keys; ++j, from += value_stride, to += kP) {
      store<Arch>(to, load<Arch>(from));
      store<Arch>(to + kW, load<Arch>(from + kW));
    }
  }
  const int rest = value_dim - c;
  for (int j = 0; rest > 0 && j < num_keys; ++j) {
    for (int i = 0; i < kP; ++i) panels[j * kP + i] = i < rest ? value[j * value_stride + c + i] : 0.0F;
  }
}

/// `weighted_sum_tile` on values in panels, which begin at the first key of the tile.
template <class Arch>
ATTN_KERNEL inline void weighted_sum_panels(const float* weights_t, std::ptrdiff_t weights_stride, int num_queries, const KeySpan* spans,
                                            const float* panels, std::ptrdiff_t panel_stride, int value_dim, const float* rescale,
                                            float* acc, std::ptrdiff_t acc_stride, bool first) {
  constexpr int kP = kPanel<Arch>;
  int c = 0;
  for (; c + kLanes<Arch> < value_dim; c += kP, panels += panel_stride) {
    weighted_sum_columns<Arch, 2>(weights_t, weights_stride, num_queries, spans, panels, kP, rescale, acc + c, acc_stride, first);
  }
  if (c < value_dim) {
    weighted_sum_columns<Arch, 1>(weights_t, weights_stride, num_queries, spans, panels, kP, rescale, acc + c, acc_stride, first);
  }
}

}  // namespace attn::kernels
