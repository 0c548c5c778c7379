#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace attn::reference {

/// x[i] / sqrt(mean of x² + epsilon) * weight[i] (arXiv:1910.07467)
inline std::vector<double> rms_norm_row(const std::vector<double>& x, const float* weight, double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  std::vector<double> y;
  for (const double value : x) {
    y.push_back(value / std::sqrt(squares / static_cast<double>(x.size()) + epsilon) * double{weight[y.size()]});
  }
  return y;
}

}  // namespace attn::reference
