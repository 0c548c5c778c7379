#pragma once

#include <cstdint>

#include "attn/attention.h"
#include "attn/status.h"

namespace attn {

/// Root mean square norm (arXiv:1910.07467), in place, of each row of [batch_size, num_heads, seq_len, head_dim]:
///   x[i] = x[i] / sqrt(mean of x² + epsilon) * weight[i]
/// What some models do to queries and keys, head by head, before the rotary positions (Qwen3).
struct RmsNormParams {
  float* x = nullptr;
  Strides strides;
  std::int32_t batch_size = 0;
  std::int32_t num_heads = 0;
  std::int32_t seq_len = 0;
  std::int32_t head_dim = 0;
  /// [head_dim]
  const float* weight = nullptr;
  /// >= 0
  float epsilon = 0.0F;
};

/// Computes the norm above. No scratch memory.
[[nodiscard]] Status rms_norm(const RmsNormParams& params) noexcept;

}  // namespace attn
