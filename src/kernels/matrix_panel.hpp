#pragma once

#include "kernels/simd.hpp"

// y = x · Wᵀ + b on a packed weight matrix (attn/projection.h). A panel is kPanel outputs: bias [kPanel], then weights [in_dim][kPanel].

namespace attn::kernels {

/// y[r][p * kPanel + c] = start + sum over i of x[r][i] * weights[p][i][c] for Rows rows and Panels panels, panel_stride apart.
/// `start` is the bias, panel_stride apart as well, or null to go on from y. Each sum runs over i in order, whatever Rows and Panels are.
template <class Arch, int Rows, int Panels>
[[gnu::always_inline]] inline void panel_block(const float* x, std::ptrdiff_t x_stride, const float* weights, std::ptrdiff_t panel_stride,
                                               int in_dim, const float* start, float* y, std::ptrdiff_t y_stride) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  constexpr int kP = kPanel<Arch>;
  V sum[Rows][Panels][2];
  for (int r = 0; r < Rows; ++r) {
    for (int p = 0; p < Panels; ++p) {
      const float* from = start != nullptr ? start + p * panel_stride : y + r * y_stride + p * kP;
      sum[r][p][0] = load<Arch>(from);
      sum[r][p][1] = load<Arch>(from + kW);
    }
  }
  const float* const end = x + in_dim;
  ATTN_NO_UNROLL
  for (; x != end; ++x, weights += kP) {
    V a[Rows];
    for (int r = 0; r < Rows; ++r) a[r] = load_splat<Arch>(x + r * x_stride);
    for (int p = 0; p < Panels; ++p) {
      const V w0 = load<Arch>(weights + p * panel_stride);
      const V w1 = load<Arch>(weights + p * panel_stride + kW);
      for (int r = 0; r < Rows; ++r) {
        sum[r][p][0] = madd<Arch>(a[r], w0, sum[r][p][0]);
        sum[r][p][1] = madd<Arch>(a[r], w1, sum[r][p][1]);
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int p = 0; p < Panels; ++p) {
      store<Arch>(y + r * y_stride + p * kP, sum[r][p][0]);
      store<Arch>(y + r * y_stride + p * kP + kW, sum[r][p][1]);
    }
  }
}

}  // namespace attn::kernels
