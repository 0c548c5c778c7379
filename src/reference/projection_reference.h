#pragma once

#include <vector>

#include "attn/projection.h"

namespace attn::reference {

/// y[r, o] = bias[o] + sum_i x[r, i] * W[o, i] with sums in double; x is dense [rows, in_dim], y is dense [rows, out_dim],
/// out_dim = num_groups * group_dim, bias [out_dim] or null.
[[nodiscard]] std::vector<double> project(const float* x, int rows, const MatrixView& weight, const float* bias);

/// The same loops with float32 sums: what a careful user writes by hand.
[[nodiscard]] std::vector<float> project_plain_f32(const float* x, int rows, const MatrixView& weight, const float* bias);

}  // namespace attn::reference
