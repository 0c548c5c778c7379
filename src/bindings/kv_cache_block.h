#pragma once

#include <cstdint>

#include "attn/kv_cache.h"
#include "bindings/abi.h"
#include "bindings/rotary_block.h"

namespace attn::bindings {

/// attn::KvCache as words. Pointers are addresses, 0 = none.
struct KvCacheBlock {
  Pointer key;
  Pointer value;
  std::int32_t type;
  std::int32_t batch_size;
  std::int32_t num_kv_heads;
  std::int32_t capacity;
  std::int32_t head_dim;
  std::int32_t value_dim;
  Pointer lengths;
  std::int32_t start;
};

/// attn::KvAppendParams as words, for `kvCacheAppend`. Strides count elements.
struct KvAppendBlock {
  KvCacheBlock cache;
  Pointer key;
  Pointer value;
  std::int32_t key_batch_stride;
  std::int32_t key_head_stride;
  std::int32_t key_row_stride;
  std::int32_t value_batch_stride;
  std::int32_t value_head_stride;
  std::int32_t value_row_stride;
  std::int32_t source_type;
  std::int32_t seq_len;
  Pointer new_lengths;
  RotaryTableBlock rotary;
  RotaryPositionsBlock positions;
  /// read and written by the call
  std::int32_t finite;
};

inline KvCache cache_of(const KvCacheBlock& b) noexcept {
  return {as<void>(b.key), as<void>(b.value), static_cast<KvType>(b.type),       b.batch_size, b.num_kv_heads, b.capacity,
          b.head_dim,      b.value_dim,       as<const std::int32_t>(b.lengths), b.start};
}

static_assert(sizeof(KvCacheBlock) == 10 * sizeof(std::uint32_t), "a block is a list of 4-byte words without gaps");
static_assert(sizeof(KvAppendBlock) == 29 * sizeof(std::uint32_t), "a block is a list of 4-byte words without gaps");

}  // namespace attn::bindings
