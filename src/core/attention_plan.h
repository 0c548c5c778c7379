#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/attention.h"
#include "core/row_tile.h"

namespace attn::core {

/// Up to so many queries of one key head go the way of kernels/decode.hpp.
inline constexpr std::int32_t kMaxDecodeRows = 4;

/// How a call is cut into work. It follows from the sizes alone, never from the number of threads, and so do the results. (With many threads
/// values are not packed: that changes no bit.)
struct AttentionPlan {
  /// At most kMaxDecodeRows queries share a key head: the time goes into reading keys and values (kernels/decode.hpp).
  bool decode = false;
  /// Tiles take the rows of all heads of a group together: few queries a head would leave most of a tile empty.
  bool grouped_rows = false;
  /// tiles per head, or per key head with grouped_rows
  std::int32_t row_tiles = 0;
  /// keys per tile; a multiple of 4
  std::int32_t key_tile = 0;
  /// keys per chunk and number of chunks: long caches with few queries are cut, computed apart and merged by their log-sum-exp
  std::int32_t chunk_keys = 0;
  std::int32_t chunks = 1;
  /// (batch, head or key head, row tile), each times `chunks`
  std::int64_t items = 0;

  /// value_dim rounded up to whole vectors; distance between rows of an accumulator
  std::int32_t acc_stride = 0;
  /// head_dim rounded up to whole vectors
  std::int32_t query_stride = 0;

  /// Floats of the values that a thread packs (packed_values.h), and from one of their panels to the next; 0 where values are read as they lie.
  std::int32_t packed_floats = 0;
  std::int32_t packed_stride = 0;

  /// Scratch, in floats. Each thread: scores, bias, packed queries, accumulator, what a tile adds to it, value tail, row statistics, values as one
  /// query sees them, packed values, float16 tiles. Whole call: partial results of chunks, row statistics.
  std::size_t thread_floats = 0;
  std::size_t partial_floats = 0;
  std::size_t row_floats = 0;
  std::size_t total_bytes = 0;
};

/// Checks everything that AttentionParams promises.
[[nodiscard]] Status validate(const AttentionParams& params) noexcept;

/// Plans a valid call. `threads`: how many scratch areas are needed.
[[nodiscard]] AttentionPlan make_plan(const AttentionParams& params, std::int32_t threads) noexcept;

}  // namespace attn::core
