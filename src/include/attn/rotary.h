#pragma once

#include <cstdint>

#include "attn/attention.h"
#include "attn/status.h"

namespace attn {

/// Cosines and sines for rotary positions (RoFormer, arXiv:2104.09864, equation 34): row p holds those of the angles of position p.
struct RotaryTable {
  /// cos, sin [num_rows, rotary_dim / 2]; null = no rotation
  const float* cos = nullptr;
  const float* sin = nullptr;
  std::int32_t num_rows = 0;
  /// the first rotary_dim elements of a row are turned, the others are copied; even, at most head_dim
  std::int32_t rotary_dim = 0;
  /// false: pairs are (i, i + rotary_dim / 2), "halves"; true: (2i, 2i + 1), "interleaved"
  bool interleaved = false;
};

/// Which row of the table each position of a sequence uses.
struct RotaryPositions {
  /// rows of the table [batch_size, seq_len]; null = position t uses row t
  const std::int32_t* rows = nullptr;
  /// distance between batch rows, in elements; 0 = all have the same positions
  std::ptrdiff_t batch_stride = 0;
};

/// Turns each pair of elements by the angle of its position:
///   y[first]  = x[first] * cos - x[second] * sin
///   y[second] = x[second] * cos + x[first] * sin
/// x, y [batch_size, num_heads, seq_len, head_dim]; y may be x with the same strides, and must not overlap it otherwise.
struct RotaryParams {
  const float* x = nullptr;
  float* y = nullptr;
  Strides x_strides, y_strides;
  std::int32_t batch_size = 0;
  std::int32_t num_heads = 0;
  std::int32_t seq_len = 0;
  std::int32_t head_dim = 0;
  RotaryTable table;
  RotaryPositions positions;
};

/// Whether the table fits rows of head_dim elements: invalid_shape for an odd or too large width, missing_pointer for half a table.
[[nodiscard]] Status check_rotary(const RotaryTable& table, std::int32_t head_dim) noexcept;

/// Whether all positions of [batch_size, seq_len] are rows of the table: invalid_option if one is not.
[[nodiscard]] Status check_positions(const RotaryTable& table, const RotaryPositions& positions, std::int32_t batch_size,
                                     std::int32_t seq_len) noexcept;

/// Computes the rotation above on the threads of attn/parallel.h. No scratch memory. Checks everything before the first byte is written.
[[nodiscard]] Status rotary_embedding(const RotaryParams& params) noexcept;

}  // namespace attn
