#include "attn/kv_cache.h"

#include <emscripten/bind.h>

#include <cstdint>

#include "bindings/kv_cache_block.h"

namespace attn::bindings {
namespace {

std::int32_t append(Pointer address) {
  auto& b = *as<KvAppendBlock>(address);
  KvAppendParams p;
  p.cache = cache_of(b.cache);
  p.key = as<const void>(b.key);
  p.value = as<const void>(b.value);
  p.key_strides = {b.key_batch_stride, b.key_head_stride, b.key_row_stride};
  p.value_strides = {b.value_batch_stride, b.value_head_stride, b.value_row_stride};
  p.source_type = static_cast<KvType>(b.source_type);
  p.seq_len = b.seq_len;
  p.new_lengths = as<const std::int32_t>(b.new_lengths);
  p.rotary = table_of(b.rotary);
  p.positions = positions_of(b.positions);
  p.finite = &b.finite;
  return static_cast<std::int32_t>(kv_cache_append(p));
}

std::int32_t drop_front(Pointer cache, Pointer first) {
  return static_cast<std::int32_t>(kv_cache_drop_front(cache_of(*as<const KvCacheBlock>(cache)), as<const std::int32_t>(first)));
}

std::int32_t reorder(Pointer cache, Pointer sources, Pointer scratch) {
  return static_cast<std::int32_t>(
      kv_cache_reorder(cache_of(*as<const KvCacheBlock>(cache)), as<const std::int32_t>(sources), as<std::int32_t>(scratch)));
}

std::int32_t copy(Pointer from, Pointer to) {
  return static_cast<std::int32_t>(kv_cache_copy(cache_of(*as<const KvCacheBlock>(from)), cache_of(*as<const KvCacheBlock>(to))));
}

std::int32_t block_bytes() { return sizeof(KvAppendBlock); }

}  // namespace

EMSCRIPTEN_BINDINGS(kv_cache) {
  emscripten::function("kvAppendBlockBytes", &block_bytes);
  emscripten::function("kvCacheAppend", &append);
  emscripten::function("kvCacheDropFront", &drop_front);
  emscripten::function("kvCacheReorder", &reorder);
  emscripten::function("kvCacheCopy", &copy);
}

}  // namespace attn::bindings
