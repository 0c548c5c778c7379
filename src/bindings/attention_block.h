#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/attention.h"
#include "bindings/abi.h"

namespace attn::bindings {

/// attn::AttentionParams as words. Pointers are addresses, 0 = none. Strides count elements.
struct AttentionBlock {
  Pointer query;
  Pointer key;
  Pointer value;
  Pointer output;

  std::int32_t query_batch_stride;
  std::int32_t query_head_stride;
  std::int32_t query_row_stride;
  std::int32_t key_batch_stride;
  std::int32_t key_head_stride;
  std::int32_t key_row_stride;
  std::int32_t value_batch_stride;
  std::int32_t value_head_stride;
  std::int32_t value_row_stride;
  std::int32_t output_batch_stride;
  std::int32_t output_head_stride;
  std::int32_t output_row_stride;

  std::int32_t kv_type;
  std::int32_t kv_finite;
  std::int32_t batch_size;
  std::int32_t num_heads;
  std::int32_t num_kv_heads;
  std::int32_t seq_len_q;
  std::int32_t seq_len_k;
  std::int32_t head_dim;
  std::int32_t value_dim;

  float scale;
  float softcap;
  std::int32_t causal;
  std::int32_t window_left;
  std::int32_t window_right;
  std::int32_t query_offset;
  Pointer query_offsets;
  Pointer key_lengths;

  Pointer mask;
  std::int32_t mask_batch_stride;
  std::int32_t mask_head_stride;
  std::int32_t mask_query_stride;
  std::int32_t mask_key_stride;
  Pointer bias;
  std::int32_t bias_batch_stride;
  std::int32_t bias_head_stride;
  std::int32_t bias_query_stride;
  std::int32_t bias_key_stride;
  Pointer alibi_slopes;
  Pointer sinks;

  Pointer lse;
  Pointer matrix;
  std::int32_t matrix_stage;
  Pointer matrix_heads;
  std::int32_t num_matrix_heads;
  std::int32_t matrix_mean;

  /// Written by the call: bytes of scratch memory that it needs, for the message when they can't be had.
  std::uint32_t scratch_bytes;
};

/// The words as the core takes them.
[[nodiscard]] AttentionParams params_of(const AttentionBlock& block) noexcept;

static_assert(sizeof(AttentionBlock) == 52 * sizeof(std::uint32_t), "a block is a list of 4-byte words without gaps");
static_assert(offsetof(AttentionBlock, kv_type) == 16 * sizeof(std::uint32_t));
static_assert(offsetof(AttentionBlock, mask) == 33 * sizeof(std::uint32_t));
static_assert(offsetof(AttentionBlock, scratch_bytes) == 51 * sizeof(std::uint32_t));

}  // namespace attn::bindings
