#include "attn/rotary.h"

#include <emscripten/bind.h>

#include <cstdint>

#include "bindings/rotary_block.h"

namespace attn::bindings {
namespace {

std::int32_t run(Pointer address) {
  const auto& b = *as<const RotaryBlock>(address);
  RotaryParams p;
  p.x = as<const float>(b.x);
  p.y = as<float>(b.y);
  p.x_strides = {b.x_batch_stride, b.x_head_stride, b.x_row_stride};
  p.y_strides = {b.y_batch_stride, b.y_head_stride, b.y_row_stride};
  p.batch_size = b.batch_size;
  p.num_heads = b.num_heads;
  p.seq_len = b.seq_len;
  p.head_dim = b.head_dim;
  p.table = table_of(b.table);
  p.positions = positions_of(b.positions);
  return static_cast<std::int32_t>(rotary_embedding(p));
}

std::int32_t block_bytes() { return sizeof(RotaryBlock); }

}  // namespace

EMSCRIPTEN_BINDINGS(rotary) {
  emscripten::function("rotaryBlockBytes", &block_bytes);
  emscripten::function("rotaryEmbedding", &run);
}

}  // namespace attn::bindings
