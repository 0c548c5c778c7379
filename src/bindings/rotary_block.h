#pragma once

#include <cstdint>

#include "attn/rotary.h"
#include "bindings/abi.h"

namespace attn::bindings {

/// attn::RotaryTable as words. Pointers are addresses, 0 = none.
struct RotaryTableBlock {
  Pointer cos;
  Pointer sin;
  std::int32_t num_rows;
  std::int32_t rotary_dim;
  std::int32_t interleaved;
};

/// attn::RotaryPositions as words.
struct RotaryPositionsBlock {
  Pointer rows;
  std::int32_t batch_stride;
};

/// attn::RotaryParams as words, for `rotaryEmbedding`. Strides count elements.
struct RotaryBlock {
  Pointer x;
  Pointer y;
  std::int32_t x_batch_stride;
  std::int32_t x_head_stride;
  std::int32_t x_row_stride;
  std::int32_t y_batch_stride;
  std::int32_t y_head_stride;
  std::int32_t y_row_stride;
  std::int32_t batch_size;
  std::int32_t num_heads;
  std::int32_t seq_len;
  std::int32_t head_dim;
  RotaryTableBlock table;
  RotaryPositionsBlock positions;
};

inline RotaryTable table_of(const RotaryTableBlock& b) noexcept {
  return {as<const float>(b.cos), as<const float>(b.sin), b.num_rows, b.rotary_dim, b.interleaved != 0};
}

inline RotaryPositions positions_of(const RotaryPositionsBlock& b) noexcept { return {as<const std::int32_t>(b.rows), b.batch_stride}; }

static_assert(sizeof(RotaryBlock) == 19 * sizeof(std::uint32_t), "a block is a list of 4-byte words without gaps");

}  // namespace attn::bindings
