#pragma once

#include <cstddef>
#include <cstdint>

#include "bindings/abi.h"
#include "bindings/attention_block.h"
#include "bindings/rotary_block.h"

namespace attn::bindings {

/// attn::SelfAttentionParams as words, for `selfAttention`. Pointers are addresses, 0 = none.
struct SelfAttentionBlock {
  Pointer x;
  Pointer key_x;
  Pointer value_x;
  std::int32_t x_dim;
  std::int32_t key_x_dim;
  std::int32_t value_x_dim;
  std::int32_t seq_len_new;

  Pointer packed_query;
  Pointer packed_key;
  Pointer packed_value;
  Pointer packed_output;
  Pointer output;
  std::int32_t output_dim;

  Pointer query_norm;
  Pointer key_norm;
  float norm_epsilon;

  RotaryTableBlock rotary;
  RotaryPositionsBlock query_positions;
  RotaryPositionsBlock key_positions;

  Pointer cache_key;
  Pointer cache_value;
  std::int32_t cache_type;
  std::int32_t cache_capacity;
  Pointer cache_lengths;
  std::int32_t cache_start;
  Pointer new_lengths;
  /// KvAppendParams::finite, read and written by the call
  std::int32_t cache_finite;

  Pointer extra_key;
  Pointer extra_value;

  Pointer trace_query;
  Pointer trace_key;
  Pointer trace_value;
  Pointer trace_scores;
  Pointer trace_scaled_scores;
  Pointer trace_masked_scores;
  Pointer trace_weights;
  Pointer trace_context;

  /// sizes and options; its `scratch_bytes` is written by the call
  AttentionBlock attention;
};

static_assert(offsetof(SelfAttentionBlock, attention) == 43 * sizeof(std::uint32_t), "a block is a list of 4-byte words without gaps");

}  // namespace attn::bindings
