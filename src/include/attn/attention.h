#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/status.h"

namespace attn {

/// Element type of keys and values. Arithmetic is always float32.
enum class KvType : std::int32_t { f32 = 0, f16 = 1 };

/// Distances between neighbours along each axis, in elements; the last axis (head_dim) is contiguous.
/// Heads first, [batch, heads, seq, dim]:      { heads * seq * dim, seq * dim, dim }.
/// Positions first, [batch, seq, heads, dim]:  { seq * heads * dim, dim, heads * dim }.
struct Strides {
  std::ptrdiff_t batch = 0;
  std::ptrdiff_t head = 0;
  std::ptrdiff_t row = 0;
};

/// Distances along the axes of a mask or bias, in elements; 0 repeats (broadcasts) along that axis.
struct ScoreStrides {
  std::ptrdiff_t batch = 0;
  std::ptrdiff_t head = 0;
  std::ptrdiff_t query = 0;
  std::ptrdiff_t key = 0;
};

/// Which [seq_len_q, seq_len_k] matrices `AttentionParams::matrix` receives (ONNX Attention, qk_matmul_output_mode).
enum class MatrixStage : std::int32_t {
  none = -1,
  /// scale * q·k
  scaled_scores = 0,
  /// softcap * tanh(scale * q·k / softcap); the same as `scaled_scores` where softcap is 0
  softcapped_scores = 1,
  /// softcapped scores + ALiBi + bias, and exactly -inf where the query does not see the key
  masked_scores = 2,
  /// softmax of the above: each row sums to 1, or is 0 where the query sees no key
  weights = 3,
};

/// Scaled dot-product attention over all heads of a batch.
///
///   scores[b,h,t,s] = cap(scale * dot(query[b,h,t,:], key[b,g,s,:])) + alibi + bias[b,h,t,s],  -inf if t does not see s
///   weights[b,h,t,:] = softmax over s of scores[b,h,t,:] (with sinks[h] as one more score that attends to nothing)
///   output[b,h,t,:] = sum_s weights[b,h,t,s] * value[b,g,s,:]
///   with g = floor(h / (num_heads / num_kv_heads)) and cap(x) = softcap * tanh(x / softcap).
///
/// Position of query t in batch row b:  p = t + query_offset (or query_offsets[b]).
/// Query t sees key s iff all of these hold:
///   s < seq_len_k, and s < key_lengths[b] if given
///   s <= p                    if causal                 3 queries, 5 keys, query_offset 2:  1 1 1 0 0
///   s >= p - window_left      if window_left >= 0                                          1 1 1 1 0
///   s <= p + window_right     if window_right >= 0                                         1 1 1 1 1
///   mask[b,h,t,s] != 0        if mask is given
///   bias[b,h,t,s] != -inf     if bias is given
/// Keys and values that a query does not see add nothing to its row even if they hold NaN or infinity.
/// A query that sees no key (and has no sink) yields output 0, weights 0 and lse = -inf.
struct AttentionParams {
  /// query [batch_size, num_heads, seq_len_q, head_dim]
  const float* query = nullptr;
  /// key [batch_size, num_kv_heads, seq_len_k, head_dim], of kv_type
  const void* key = nullptr;
  /// value [batch_size, num_kv_heads, seq_len_k, value_dim], of kv_type
  const void* value = nullptr;
  /// output [batch_size, num_heads, seq_len_q, value_dim]
  float* output = nullptr;
  Strides query_strides, key_strides, value_strides, output_strides;
  KvType kv_type = KvType::f32;
  /// float16 keys and values hold no infinity and no NaN, as the caller promises: they are not looked at, which saves time. Where it is not true,
  /// they count as numbers from 65,536 to 131,008.
  bool kv_finite = false;

  std::int32_t batch_size = 0;
  std::int32_t num_heads = 0;
  /// divides num_heads
  std::int32_t num_kv_heads = 0;
  std::int32_t seq_len_q = 0;
  std::int32_t seq_len_k = 0;
  std::int32_t head_dim = 0;
  std::int32_t value_dim = 0;

  /// factor on q·k, finite; callers pass 1 / sqrt(head_dim) for the usual attention
  float scale = 1.0F;
  /// limit of the scores, >= 0; 0 = off
  float softcap = 0.0F;

  bool causal = false;
  /// keys to the left and right of the own position that are seen; -1 = open
  std::int32_t window_left = -1;
  std::int32_t window_right = -1;
  /// position of the first query among the keys, for all batch rows; may be negative (leading rows see nothing)
  std::int32_t query_offset = 0;
  /// the same for each batch row [batch_size]; null = query_offset for all
  const std::int32_t* query_offsets = nullptr;
  /// number of valid keys of each batch row [batch_size], 0..seq_len_k; null = all
  const std::int32_t* key_lengths = nullptr;

  /// yes/no mask, nonzero = attend; null = none
  const std::uint8_t* mask = nullptr;
  ScoreStrides mask_strides;
  /// added to the scores after softcap; null = none
  const float* bias = nullptr;
  ScoreStrides bias_strides;
  /// slopes [num_heads]: -slope * |p - s| is added to the scores (ALiBi, arXiv:2108.12409); null = none
  const float* alibi_slopes = nullptr;
  /// one logit per query head [num_heads] that joins the softmax and has no value; null = none
  const float* sinks = nullptr;

  /// log-sum-exp of each row of scores (sink included) [batch_size, num_heads, seq_len_q]; null = not wanted
  float* lse = nullptr;

  /// matrices on request, [batch_size, n, seq_len_q, seq_len_k]; null = not wanted
  float* matrix = nullptr;
  MatrixStage matrix_stage = MatrixStage::none;
  /// the query heads wanted [num_matrix_heads]; null = all heads, n = num_heads
  const std::int32_t* matrix_heads = nullptr;
  std::int32_t num_matrix_heads = 0;
  /// true: n = 1, the mean over the wanted heads (weights only)
  bool matrix_mean = false;
};

/// Bytes of scratch memory that `attention_forward` needs for these parameters; O(seq), never O(seq²).
/// Returns 0 for parameters that `attention_forward` would refuse.
[[nodiscard]] std::size_t attention_scratch_bytes(const AttentionParams& params) noexcept;

/// Computes attention (see AttentionParams). `scratch` is 16-byte aligned memory of `scratch_bytes` bytes.
/// `output` may be null when only `matrix` or `lse` is wanted. Zero sizes are legal. Runs on the threads of attn/parallel.h; the
/// result does not depend on their number. Checks everything before the first byte is written.
/// Cost: 2 * batch_size * num_heads * (visible pairs) * (head_dim + value_dim) multiply-adds; twice the score part with `matrix`.
[[nodiscard]] Status attention_forward(const AttentionParams& params, void* scratch, std::size_t scratch_bytes) noexcept;

}  // namespace attn
