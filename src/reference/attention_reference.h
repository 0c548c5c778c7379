#pragma once

#include <vector>

#include "attn/attention.h"

namespace attn::reference {

/// What `attention_forward` would write, densely packed and in the precision of the sums.
template <typename Real>
struct AttentionResult {
  /// [batch_size, num_heads, seq_len_q, value_dim]
  std::vector<Real> output;
  /// [batch_size, num_heads, seq_len_q]
  std::vector<Real> lse;
  /// [batch_size, n, seq_len_q, seq_len_k], as AttentionParams::matrix; empty for MatrixStage::none
  std::vector<Real> matrix;
};

/// Attention as the formula of attn/attention.h reads, one row after the other, sums and exponentials in double: the yardstick.
/// Trusts its parameters; ignores the output pointers and their strides.
[[nodiscard]] AttentionResult<double> attention(const AttentionParams& params);

/// The very same loops with every intermediate in float32: what a careful user writes by hand. A kernel's error is judged against
/// the error of this one.
[[nodiscard]] AttentionResult<float> attention_plain_f32(const AttentionParams& params);

}  // namespace attn::reference
