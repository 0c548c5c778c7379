#pragma once

#include <cstdint>
#include <limits>

#include "attn/attention.h"

namespace attn::core {

/// Keys [begin, end).
struct KeyRange {
  std::int32_t begin;
  std::int32_t end;
};

/// Valid keys of batch row b: all of them, or key_lengths[b].
inline std::int32_t key_count(const AttentionParams& p, std::int32_t b) {
  return p.key_lengths != nullptr ? p.key_lengths[b] : p.seq_len_k;
}

/// Position of query t of batch row b among the keys.
inline std::int64_t query_position(const AttentionParams& p, std::int32_t b, std::int32_t t) {
  return static_cast<std::int64_t>(t) + (p.query_offsets != nullptr ? p.query_offsets[b] : p.query_offset);
}

/// The keys that lengths, causality and window leave to query t of batch row b; mask and bias may hide more. Empty ranges have begin == end.
inline KeyRange visible_range(const AttentionParams& p, std::int32_t b, std::int32_t t) {
  const std::int64_t position = query_position(p, b, t);
  std::int64_t begin = 0;
  std::int64_t end = key_count(p, b);
  if (p.causal && position + 1 < end) end = position + 1;
  if (p.window_right >= 0 && position + p.window_right + 1 < end) end = position + p.window_right + 1;
  if (p.window_left >= 0 && position - p.window_left > begin) begin = position - p.window_left;
  if (end < 0) end = 0;
  if (begin > end) begin = end;
  return {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)};
}

/// Whether mask and bias let query t of head h see key s.
inline bool passes_mask(const AttentionParams& p, std::int32_t b, std::int32_t h, std::int32_t t, std::int32_t s) {
  if (p.mask != nullptr) {
    const ScoreStrides& m = p.mask_strides;
    if (p.mask[b * m.batch + h * m.head + t * m.query + s * m.key] == 0) return false;
  }
  if (p.bias != nullptr) {
    const ScoreStrides& m = p.bias_strides;
    if (p.bias[b * m.batch + h * m.head + t * m.query + s * m.key] == -std::numeric_limits<float>::infinity()) return false;
  }
  return true;
}

/// Whether query t of head h sees key s at all.
inline bool sees(const AttentionParams& p, std::int32_t b, std::int32_t h, std::int32_t t, std::int32_t s) {
  const KeyRange range = visible_range(p, b, t);
  return s >= range.begin && s < range.end && passes_mask(p, b, h, t, s);
}

/// Whether query t of head h sees any key.
inline bool sees_any(const AttentionParams& p, std::int32_t b, std::int32_t h, std::int32_t t) {
  const KeyRange range = visible_range(p, b, t);
  for (std::int32_t s = range.begin; s < range.end; ++s) {
    if (passes_mask(p, b, h, t, s)) return true;
  }
  return false;
}

}  // namespace attn::core
