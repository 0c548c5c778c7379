#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/status.h"

namespace attn {

/// Element type of a weight matrix that is packed.
enum class WeightType : std::int32_t { f32 = 0, f16 = 1, bf16 = 2 };

/// A weight matrix W [out, in] with out = num_groups * group_dim, as it is stored by a file or a user.
/// A group is one head for the query, key and value projections, and the whole width (num_groups 1) for the output projection.
struct MatrixView {
  const void* data = nullptr;
  WeightType type = WeightType::f32;
  std::int32_t num_groups = 1;
  std::int32_t group_dim = 0;
  std::int32_t in_dim = 0;
  /// distance between neighbours along `out` and `in`, in elements: { in_dim, 1 } for [out, in], { 1, out_dim } for [in, out]
  std::ptrdiff_t out_stride = 0;
  std::ptrdiff_t in_stride = 0;
};

/// Elements (floats) of the packed form of a matrix: each group is padded to whole panels.
/// Returns 0 where a size is not positive or the product does not fit.
[[nodiscard]] std::size_t packed_elements(std::int32_t num_groups, std::int32_t group_dim, std::int32_t in_dim) noexcept;

/// Packs W, and the bias [out] if not null, for `project`. `packed` has packed_elements(...) floats, 16-byte aligned.
/// Packed form: for each group, for each panel of kPanel outputs: bias [kPanel], then W transposed [in][kPanel]; padding is 0.
[[nodiscard]] Status pack_matrix(const MatrixView& weight, const float* bias, float* packed) noexcept;

/// y = x · Wᵀ + b on a packed matrix.
///   y[b, r, g, o] = bias[g, o] + sum_i x[b, r, i] * W[g, o, i]
/// x [batch_size, rows, in_dim], y written through its own strides, so that heads land where attention wants them.
struct ProjectionParams {
  const float* x = nullptr;
  std::ptrdiff_t x_batch_stride = 0;
  std::ptrdiff_t x_row_stride = 0;
  const float* packed = nullptr;
  float* y = nullptr;
  std::ptrdiff_t y_batch_stride = 0;
  std::ptrdiff_t y_row_stride = 0;
  std::ptrdiff_t y_group_stride = 0;
  std::int32_t batch_size = 0;
  std::int32_t rows = 0;
  std::int32_t num_groups = 0;
  std::int32_t group_dim = 0;
  std::int32_t in_dim = 0;
};

/// Computes the projection above on the threads of attn/parallel.h. No scratch memory. y must not overlap x or packed.
/// Results do not depend on the number of threads, nor on how many rows are projected together.
[[nodiscard]] Status project(const ProjectionParams& params) noexcept;

}  // namespace attn
