#include "attn/self_attention.h"

#include <emscripten/bind.h>

#include <cstdint>

#include "bindings/memory.h"
#include "bindings/self_attention_block.h"

namespace attn::bindings {
namespace {

SelfAttentionParams params_of(SelfAttentionBlock& b) noexcept {
  SelfAttentionParams p;
  p.x = as<const float>(b.x);
  p.key_x = as<const float>(b.key_x);
  p.value_x = as<const float>(b.value_x);
  p.x_dim = b.x_dim;
  p.key_x_dim = b.key_x_dim;
  p.value_x_dim = b.value_x_dim;
  p.seq_len_new = b.seq_len_new;
  p.packed_query = as<const float>(b.packed_query);
  p.packed_key = as<const float>(b.packed_key);
  p.packed_value = as<const float>(b.packed_value);
  p.packed_output = as<const float>(b.packed_output);
  p.output = as<float>(b.output);
  p.output_dim = b.output_dim;
  p.attention = params_of(b.attention);
  p.query_norm = as<const float>(b.query_norm);
  p.key_norm = as<const float>(b.key_norm);
  p.norm_epsilon = b.norm_epsilon;
  p.rotary = table_of(b.rotary);
  p.query_positions = positions_of(b.query_positions);
  p.key_positions = positions_of(b.key_positions);
  p.cache.key = as<void>(b.cache_key);
  p.cache.value = as<void>(b.cache_value);
  p.cache.type = static_cast<KvType>(b.cache_type);
  p.cache.batch_size = b.attention.batch_size;
  p.cache.num_kv_heads = b.attention.num_kv_heads;
  p.cache.capacity = b.cache_capacity;
  p.cache.head_dim = b.attention.head_dim;
  p.cache.value_dim = b.attention.value_dim;
  p.cache.lengths = as<const std::int32_t>(b.cache_lengths);
  p.cache.start = b.cache_start;
  p.new_lengths = as<const std::int32_t>(b.new_lengths);
  p.cache_finite = &b.cache_finite;
  p.extra_key = as<const float>(b.extra_key);
  p.extra_value = as<const float>(b.extra_value);
  p.trace.query = as<float>(b.trace_query);
  p.trace.key = as<float>(b.trace_key);
  p.trace.value = as<float>(b.trace_value);
  p.trace.scores = as<float>(b.trace_scores);
  p.trace.scaled_scores = as<float>(b.trace_scaled_scores);
  p.trace.masked_scores = as<float>(b.trace_masked_scores);
  p.trace.weights = as<float>(b.trace_weights);
  p.trace.context = as<float>(b.trace_context);
  return p;
}

std::int32_t run(Pointer address) {
  auto& block = *as<SelfAttentionBlock>(address);
  const SelfAttentionParams params = params_of(block);
  const std::size_t bytes = self_attention_scratch_bytes(params);
  block.attention.scratch_bytes = static_cast<std::uint32_t>(bytes);
  void* memory = scratch(bytes);
  if (memory == nullptr) return static_cast<std::int32_t>(Status::out_of_memory);
  return static_cast<std::int32_t>(self_attention(params, memory, bytes));
}

std::int32_t block_bytes() { return sizeof(SelfAttentionBlock); }

}  // namespace

EMSCRIPTEN_BINDINGS(self_attention) {
  emscripten::function("selfAttentionBlockBytes", &block_bytes);
  emscripten::function("selfAttention", &run);
}

}  // namespace attn::bindings
