#include "bindings/attention_block.h"

namespace attn::bindings {

AttentionParams params_of(const AttentionBlock& b) noexcept {
  AttentionParams p;
  p.query = as<const float>(b.query);
  p.key = as<const void>(b.key);
  p.value = as<const void>(b.value);
  p.output = as<float>(b.output);
  p.query_strides = {b.query_batch_stride, b.query_head_stride, b.query_row_stride};
  p.key_strides = {b.key_batch_stride, b.key_head_stride, b.key_row_stride};
  p.value_strides = {b.value_batch_stride, b.value_head_stride, b.value_row_stride};
  p.output_strides = {b.output_batch_stride, b.output_head_stride, b.output_row_stride};
  p.kv_type = static_cast<KvType>(b.kv_type);
  p.kv_finite = b.kv_finite != 0;
  p.batch_size = b.batch_size;
  p.num_heads = b.num_heads;
  p.num_kv_heads = b.num_kv_heads;
  p.seq_len_q = b.seq_len_q;
  p.seq_len_k = b.seq_len_k;
  p.head_dim = b.head_dim;
  p.value_dim = b.value_dim;
  p.scale = b.scale;
  p.softcap = b.softcap;
  p.causal = b.causal != 0;
  p.window_left = b.window_left;
  p.window_right = b.window_right;
  p.query_offset = b.query_offset;
  p.query_offsets = as<const std::int32_t>(b.query_offsets);
  p.key_lengths = as<const std::int32_t>(b.key_lengths);
  p.mask = as<const std::uint8_t>(b.mask);
  p.mask_strides = {b.mask_batch_stride, b.mask_head_stride, b.mask_query_stride, b.mask_key_stride};
  p.bias = as<const float>(b.bias);
  p.bias_strides = {b.bias_batch_stride, b.bias_head_stride, b.bias_query_stride, b.bias_key_stride};
  p.alibi_slopes = as<const float>(b.alibi_slopes);
  p.sinks = as<const float>(b.sinks);
  p.lse = as<float>(b.lse);
  p.matrix = as<float>(b.matrix);
  p.matrix_stage = static_cast<MatrixStage>(b.matrix_stage);
  p.matrix_heads = as<const std::int32_t>(b.matrix_heads);
  p.num_matrix_heads = b.num_matrix_heads;
  p.matrix_mean = b.matrix_mean != 0;
  return p;
}

}  // namespace attn::bindings
