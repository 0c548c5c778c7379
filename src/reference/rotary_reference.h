#pragma once

#include <cstddef>
#include <vector>

namespace attn::reference {

/// Rotary positions on one row (arXiv:2104.09864, equation 34): each pair of the first rotary_dim elements is turned by its angle, the rest
/// is copied. cos, sin [rotary_dim / 2]; pairs are (i, i + rotary_dim / 2), or (2i, 2i + 1) when interleaved.
inline std::vector<double> rotary_row(const std::vector<double>& x, const float* cos, const float* sin, int rotary_dim, bool interleaved) {
  std::vector<double> y = x;
  const int half = rotary_dim / 2;
  for (int i = 0; i < half; ++i) {
    const auto first = static_cast<std::size_t>(interleaved ? 2 * i : i);
    const auto second = static_cast<std::size_t>(interleaved ? 2 * i + 1 : i + half);
    y[first] = x[first] * double{cos[i]} - x[second] * double{sin[i]};
    y[second] = x[second] * double{cos[i]} + x[first] * double{sin[i]};
  }
  return y;
}

}  // namespace attn::reference
