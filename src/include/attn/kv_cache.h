#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/attention.h"
#include "attn/rotary.h"
#include "attn/status.h"

namespace attn {

/// Keys and values of earlier positions, in memory of the caller: key [batch_size, num_kv_heads, capacity, head_dim] and
/// value [batch_size, num_kv_heads, capacity, value_dim], both dense and of `type`. Rows start ... start + lengths[b] - 1 of batch row b are
/// valid; a cache whose window slides moves its start, and its rows only now and then.
/// The functions below never change `lengths`: a caller commits a step by counting up after it.
struct KvCache {
  void* key = nullptr;
  void* value = nullptr;
  KvType type = KvType::f32;
  std::int32_t batch_size = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t capacity = 0;
  std::int32_t head_dim = 0;
  std::int32_t value_dim = 0;
  /// valid positions of each batch row [batch_size], 0..capacity - start
  const std::int32_t* lengths = nullptr;
  /// first row in use, the same for all batch rows, 0..capacity
  std::int32_t start = 0;
};

/// Distances between neighbours in the cache, as AttentionParams wants them.
[[nodiscard]] Strides key_strides(const KvCache& cache) noexcept;
[[nodiscard]] Strides value_strides(const KvCache& cache) noexcept;

/// New positions for a cache.
struct KvAppendParams {
  KvCache cache;
  /// key [batch_size, num_kv_heads, seq_len, head_dim], value [batch_size, num_kv_heads, seq_len, value_dim], of `source_type`
  const void* key = nullptr;
  const void* value = nullptr;
  Strides key_strides, value_strides;
  KvType source_type = KvType::f32;
  std::int32_t seq_len = 0;
  /// number of positions appended to each batch row [batch_size], 0..seq_len; null = seq_len for all
  const std::int32_t* new_lengths = nullptr;
  /// keys are turned on their way into the cache; cos null = no rotation
  RotaryTable rotary;
  RotaryPositions positions;
  /// For caches in float16, AttentionParams::kv_finite: 1 while no position held an infinity or a NaN. Set to 0 when a new one does; null = not
  /// wanted.
  std::int32_t* finite = nullptr;
};

/// Writes the new positions behind the valid ones of each batch row, in the type of the cache: float16 is rounded once, after the rotation.
/// invalid_option: a batch row has no room for its new positions, or a length is out of range. Checks everything before the first byte is written.
[[nodiscard]] Status kv_cache_append(const KvAppendParams& params) noexcept;

/// Moves rows start + first[b] ... start + lengths[b] - 1 of each batch row to row 0, which becomes its start. first [batch_size], 0..lengths[b].
[[nodiscard]] Status kv_cache_drop_front(const KvCache& cache, const std::int32_t* first) noexcept;

/// Batch row b becomes what batch row sources[b] was, for all b at once (beam search); a source may be used several times.
/// sources [batch_size]; scratch: 2 * batch_size integers, whatever they hold. Copies each batch row at most once; rows with
/// sources[b] == b are not touched.
[[nodiscard]] Status kv_cache_reorder(const KvCache& cache, const std::int32_t* sources, std::int32_t* scratch) noexcept;

/// Copies the valid positions into another cache of the same sizes and type, but of another capacity (growth), from row to.start on.
/// `to.lengths` is not read. The two must not overlap.
[[nodiscard]] Status kv_cache_copy(const KvCache& from, const KvCache& to) noexcept;

}  // namespace attn
