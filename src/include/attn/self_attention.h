#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/attention.h"
#include "attn/kv_cache.h"
#include "attn/rotary.h"
#include "attn/status.h"

namespace attn {

/// Where a copy of each intermediate result goes; null = not wanted. For teaching and for looking inside: all are dense, heads first, and
/// the four matrices take O(seq²) memory and a pass over the scores each. Only without a cache.
struct SelfAttentionTrace {
  /// step 1, as they enter the scores (after norm and rotary positions): [batch_size, num_heads, seq_len_q, head_dim],
  /// [batch_size, num_kv_heads, seq_len_k, head_dim], [batch_size, num_kv_heads, seq_len_k, value_dim]
  float* query = nullptr;
  float* key = nullptr;
  float* value = nullptr;
  /// step 2: query · key, [batch_size, num_heads, seq_len_q, seq_len_k] as the next three
  float* scores = nullptr;
  /// step 3: scale * scores
  float* scaled_scores = nullptr;
  /// after softcap, ALiBi and bias, -inf where the query does not see the key
  float* masked_scores = nullptr;
  /// step 4: softmax of those
  float* weights = nullptr;
  /// steps 5 and 6: weighted sums of the values with the heads side by side, [batch_size, seq_len_q, num_heads * value_dim]
  float* context = nullptr;
};

/// Attention with its projections: the seven steps of self-attention, or of cross attention when the keys come from another sequence.
///
///   1. project        query = x · Wqᵀ + bq, key = key_x · Wkᵀ + bk, value = value_x · Wvᵀ + bv, cut into heads
///   2. score          scores = query · keyᵀ, head by head
///   3. scale          scores * scale; then softcap, bias, masks
///   4. softmax        weights = softmax over the keys
///   5. weighted sum   weights · value
///   6. concatenate    the heads side by side
///   7. project        output = context · Woᵀ + bo
///
/// Between 1 and 2, where given: norm of queries and keys, rotary positions, and a cache that takes the new keys and values and whose
/// keys and values are attended to. Memory beyond inputs and output is O(seq).
struct SelfAttentionParams {
  /// x [batch_size, seq_len_q, x_dim]; key_x [batch_size, seq_len_new, key_x_dim] and value_x [batch_size, seq_len_new, value_x_dim]: x again
  /// for self-attention. All dense.
  const float* x = nullptr;
  const float* key_x = nullptr;
  const float* value_x = nullptr;
  std::int32_t x_dim = 0;
  std::int32_t key_x_dim = 0;
  std::int32_t value_x_dim = 0;
  /// positions that are projected to keys and values; 0 with a cache: only those that it holds are attended to
  std::int32_t seq_len_new = 0;

  /// weights packed by `pack_matrix`: groups are heads for the first three, one group for the last
  const float* packed_query = nullptr;
  const float* packed_key = nullptr;
  const float* packed_value = nullptr;
  const float* packed_output = nullptr;
  /// output [batch_size, seq_len_q, output_dim], dense
  float* output = nullptr;
  std::int32_t output_dim = 0;

  /// sizes and options of the attention. The caller leaves query, key, value, output, their strides, kv_type and kv_finite alone: they
  /// are set here.
  /// seq_len_k counts all keys attended to: seq_len_new, one more with an extra key, or the longest of the batch rows in the cache afterwards.
  AttentionParams attention;

  /// norm of each head's query and key, weights [head_dim] (see rms_norm.h); null = none
  const float* query_norm = nullptr;
  const float* key_norm = nullptr;
  float norm_epsilon = 0.0F;

  /// rotary positions of queries and new keys; cos null = none
  RotaryTable rotary;
  RotaryPositions query_positions;
  RotaryPositions key_positions;

  /// takes the new keys and values; key null = no cache. `lengths` are those before the call and stay as they are.
  KvCache cache;
  /// positions that each batch row really has of seq_len_new [batch_size]; null = all. Only with a cache.
  const std::int32_t* new_lengths = nullptr;
  /// KvAppendParams::finite of the cache, read and written; null = unknown
  std::int32_t* cache_finite = nullptr;

  /// one more key and value, the last, which every query sees whatever the masks say: extra_key [num_kv_heads * head_dim],
  /// extra_value [num_kv_heads * value_dim] (PyTorch's bias_k and bias_v); null = none. Not with a cache or ALiBi.
  const float* extra_key = nullptr;
  const float* extra_value = nullptr;

  SelfAttentionTrace trace;
};

/// Bytes of scratch memory that `self_attention` needs; 0 for parameters that it would refuse.
[[nodiscard]] std::size_t self_attention_scratch_bytes(const SelfAttentionParams& params) noexcept;

/// Computes the seven steps. `scratch` is 64-byte aligned. Checks everything before the first byte is written; the cache is written only
/// behind its valid positions.
[[nodiscard]] Status self_attention(const SelfAttentionParams& params, void* scratch, std::size_t scratch_bytes) noexcept;

}  // namespace attn
