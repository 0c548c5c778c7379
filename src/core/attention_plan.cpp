#include "core/attention_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/simd.hpp"

namespace attn::core {
namespace {

using kernels::DefaultArch;

/// Fewer items than this, and long caches are cut into chunks of at least kMinChunkKeys.
constexpr std::int64_t kWantedItems = 8;
constexpr std::int32_t kMinChunkKeys = 1024;
/// Floats of keys, or values, in a tile: 32 KiB, so that with scores and queries a tile stays near the core.
constexpr std::int32_t kTileFloats = 8192;
/// No more, since what a tile adds is summed plainly: small weights beside a large one would be rounded away in longer sums.
constexpr std::int32_t kMaxKeyTile = 128;
constexpr std::int32_t kMinKeyTile = 32;
/// What takes the place of kTileFloats when decoding, where a row is read once (float16 that has to be looked at for infinities: twice): long
/// tiles have fewer starts and ends.
constexpr std::int32_t kDecodeTileFloats = 16384;

/// Values are packed (packed_values.h) where each thread has at least so many queries for a key head, if they share them: with fewer, packing
/// takes longer than it saves.
constexpr std::int64_t kMinPackedRows = 96;
/// And where they take no more than this: 4 MiB a thread.
constexpr std::int64_t kMaxPackedFloats = std::int64_t{1} << 20;

template <class T>
T round_up(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Whether the product of non-negative sizes can be addressed.
bool addressable(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  std::int64_t product = 1;
  for (const std::int64_t size : {a, b, c, d}) {
    if (size == 0) return true;
    if (product > kLimit / size) return false;
    product *= size;
  }
  return true;
}

}  // namespace

Status validate(const AttentionParams& p) noexcept {
  const std::int32_t sizes[] = {p.batch_size, p.num_heads, p.num_kv_heads, p.seq_len_q, p.seq_len_k, p.head_dim, p.value_dim};
  for (const std::int32_t size : sizes) {
    if (size < 0) return Status::invalid_shape;
  }
  if (p.num_heads > 0 && (p.num_kv_heads == 0 || p.num_heads % p.num_kv_heads != 0)) return Status::invalid_shape;
  if (!addressable(p.batch_size, p.num_heads, p.seq_len_q, std::max(p.head_dim, p.value_dim)) ||
      !addressable(p.batch_size, p.num_kv_heads, p.seq_len_k, std::max(p.head_dim, p.value_dim))) {
    return Status::invalid_shape;
  }
  if (!std::isfinite(p.scale) || !std::isfinite(p.softcap) || p.softcap < 0.0F) return Status::invalid_option;
  if (p.window_left < -1 || p.window_right < -1) return Status::invalid_option;
  if (p.kv_type != KvType::f32 && p.kv_type != KvType::f16) return Status::invalid_option;
  const auto stage = static_cast<std::int32_t>(p.matrix_stage);
  if (stage < -1 || stage > 3) return Status::invalid_option;
  if (p.matrix_mean && p.matrix_stage != MatrixStage::weights) return Status::invalid_option;
  if (p.key_lengths != nullptr) {
    for (std::int32_t b = 0; b < p.batch_size; ++b) {
      if (p.key_lengths[b] < 0 || p.key_lengths[b] > p.seq_len_k) return Status::invalid_option;
    }
  }
  const bool has_rows = p.batch_size > 0 && p.num_heads > 0 && p.seq_len_q > 0;
  if (p.matrix != nullptr) {
    if (p.matrix_stage == MatrixStage::none || p.num_matrix_heads < 0) return Status::invalid_option;
    if (p.matrix_heads != nullptr) {
      for (std::int32_t i = 0; i < p.num_matrix_heads; ++i) {
        if (p.matrix_heads[i] < 0 || p.matrix_heads[i] >= p.num_heads) return Status::invalid_option;
      }
    }
    const std::int32_t heads = p.matrix_mean ? 1 : p.matrix_heads != nullptr ? p.num_matrix_heads : p.num_heads;
    if (!addressable(p.batch_size, heads, p.seq_len_q, p.seq_len_k)) return Status::invalid_shape;
  }
  if (has_rows && p.seq_len_k > 0) {
    if (p.head_dim > 0 && (p.query == nullptr || p.key == nullptr)) return Status::missing_pointer;
    if (p.value_dim > 0 && p.output != nullptr && p.value == nullptr) return Status::missing_pointer;
  }
  if (p.output == nullptr && p.matrix == nullptr && p.lse == nullptr && has_rows && p.value_dim > 0) return Status::missing_pointer;
  return Status::ok;
}

AttentionPlan make_plan(const AttentionParams& p, std::int32_t threads) noexcept {
  AttentionPlan plan;
  const std::int32_t widest = std::max({p.head_dim, p.value_dim, 1});
  const std::int32_t group = p.num_kv_heads > 0 ? p.num_heads / p.num_kv_heads : 1;
  const std::int64_t group_rows = static_cast<std::int64_t>(group) * p.seq_len_q;
  plan.decode = group_rows <= kMaxDecodeRows;
  plan.grouped_rows = plan.decode || p.seq_len_q < kQueryTile;
  const std::int64_t rows = plan.grouped_rows ? group_rows : p.seq_len_q;
  plan.row_tiles = static_cast<std::int32_t>(round_up<std::int64_t>(rows, kQueryTile) / kQueryTile);
  const std::int32_t tile_floats = plan.decode ? kDecodeTileFloats : kTileFloats;
  plan.key_tile = std::clamp(round_up(tile_floats / widest, 4), kMinKeyTile, kMaxKeyTile);

  const std::int64_t heads = plan.grouped_rows ? p.num_kv_heads : p.num_heads;
  plan.items = static_cast<std::int64_t>(p.batch_size) * heads * plan.row_tiles;
  plan.chunk_keys = std::max(p.seq_len_k, 1);
  if (plan.grouped_rows && plan.items > 0 && plan.items < kWantedItems && p.seq_len_k >= 2 * kMinChunkKeys) {
    const std::int64_t wanted = std::min<std::int64_t>((kWantedItems + plan.items - 1) / plan.items, p.seq_len_k / kMinChunkKeys);
    plan.chunk_keys = static_cast<std::int32_t>(round_up<std::int64_t>((p.seq_len_k + wanted - 1) / wanted, kMaxKeyTile));
    plan.chunks = (p.seq_len_k + plan.chunk_keys - 1) / plan.chunk_keys;
  }
  plan.items *= plan.chunks;

  constexpr std::int32_t kLanes = kernels::kLanes<DefaultArch>;
  plan.acc_stride = round_up(std::max(p.value_dim, 1), kLanes);
  plan.query_stride = round_up(std::max(p.head_dim, 1), kLanes);
  // Not a matter of `output`: a layer plans before it has one.
  constexpr std::int32_t kPanel = kernels::kPanel<DefaultArch>;
  const std::int64_t packed_floats = static_cast<std::int64_t>(p.seq_len_k) * round_up(p.value_dim, kPanel);
  if (!plan.decode && group_rows / std::max(threads, 1) >= kMinPackedRows && packed_floats > 0 && packed_floats <= kMaxPackedFloats) {
    plan.packed_floats = static_cast<std::int32_t>(packed_floats);
    plan.packed_stride = p.seq_len_k * kPanel;
  }
  const auto floats = [](std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(round_up<std::int64_t>(a * b, 16)); };
  plan.thread_floats = floats(plan.key_tile, kQueryTile)          // scores
                       + floats(plan.key_tile, kQueryTile)        // bias, transposed
                       + floats(plan.query_stride, kQueryTile)    // packed queries
                       + floats(plan.acc_stride, kQueryTile)      // accumulator
                       + floats(plan.acc_stride, kMaxDecodeRows)  // what a tile adds to it, row by row
                       + floats(plan.key_tile, kLanes)            // value tail
                       + 4 * floats(1, kQueryTile)                // row_max, row_sum, row_error, rescale
                       + floats(plan.key_tile, p.value_dim);      // values as one query sees them
  if (p.kv_type == KvType::f16) {
    plan.thread_floats += floats(plan.key_tile, p.head_dim) + floats(plan.key_tile, p.value_dim);
  }
  if (plan.packed_floats > 0) plan.thread_floats += floats(1, 1) + floats(plan.packed_floats, 1);
  if (plan.chunks > 1) plan.partial_floats = static_cast<std::size_t>(plan.items) * floats(plan.acc_stride + 2, kQueryTile);
  if (p.matrix != nullptr && p.matrix_stage == MatrixStage::weights) {
    plan.row_floats = 2 * floats(static_cast<std::int64_t>(p.batch_size) * p.num_heads, p.seq_len_q);
  }
  plan.total_bytes = (static_cast<std::size_t>(threads) * plan.thread_floats + plan.partial_floats + plan.row_floats) * sizeof(float);
  return plan;
}

}  // namespace attn::core
