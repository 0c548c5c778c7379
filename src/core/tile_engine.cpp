// Prefill: tiles of up to kQueryTile queries go over all keys they see, tile by tile, with the online softmax (flash attention,
// arXiv:2205.14135). Nothing of size seq x seq exists.

#include <algorithm>

#include "core/attention_work.h"
#include "core/packed_values.h"
#include "kernels/online_softmax.hpp"
#include "kernels/query_panel.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/tile_scores.hpp"
#include "kernels/value_panel.hpp"
#include "kernels/weighted_sum.hpp"

namespace attn::core {
namespace {

constexpr int kP = kernels::kPanel<Arch>;
static_assert(kQueryTile % kP == 0, "a tile of queries must hold whole panels");

int panels(const RowTile& tile) { return (tile.count + kP - 1) / kP; }

/// The keys of a tile that each panel of queries has to do with.
struct PanelSpans {
  kernels::KeySpan of[kQueryTile / kP];
};

PanelSpans all_keys(int count) {
  PanelSpans spans;
  std::fill_n(spans.of, kQueryTile / kP, kernels::KeySpan{0, count});
  return spans;
}

/// From the first key that some query of the panel sees to the last one, by range alone: near the diagonal of a causal mask, or the edges of
/// a window, panels see less than their tile.
PanelSpans seen_keys(const RowTile& tile, std::int32_t first, int count) {
  PanelSpans spans = all_keys(count);
  if (first >= tile.every.begin && first + count <= tile.every.end) return spans;
  for (int panel = 0; panel < panels(tile); ++panel) {
    kernels::KeySpan& keys = spans.of[panel];
    keys = {count, 0};
    for (int r = panel * kP; r < std::min((panel + 1) * kP, tile.count); ++r) {
      if (tile.begin[r] >= tile.end[r]) continue;
      keys.first = std::min(keys.first, std::clamp(tile.begin[r] - first, 0, count));
      keys.last = std::max(keys.last, std::clamp(tile.end[r] - first, 0, count));
    }
    if (keys.first >= keys.last) keys = {0, 0};
  }
  return spans;
}

/// Keys of a tile that some query does not see, by range alone: the first and the last ones.
struct PartlySeen {
  kernels::KeySpan of[2];
};

PartlySeen partly_seen(const RowTile& tile, std::int32_t first, int count) {
  const int begin = std::clamp(tile.every.begin - first, 0, count);
  const int end = std::clamp(tile.every.end - first, begin, count);
  return {{{0, begin}, {end, count}}};
}

/// Whether a value of a key that some query may not see is infinite or NaN: weight 0 does not hide it.
bool hides_any_nonfinite(const AttentionParams& p, const RowTile& tile, std::int32_t first, int count) {
  if (p.mask != nullptr || p.bias != nullptr) return !values_are_finite(p, tile, first, count);
  for (const kernels::KeySpan& keys : partly_seen(tile, first, count).of) {
    if (keys.first < keys.last && !values_are_finite(p, tile, first + keys.first, keys.last - keys.first)) return true;
  }
  return false;
}

/// Turns the bias of keys [first, first + count) into ws.bias_t [key][kQueryTile]. False if every element of a real row is -inf.
bool load_bias(const AttentionParams& p, const RowTile& tile, std::int32_t first, int count, Workspace& ws) {
  const std::ptrdiff_t stride = p.bias_strides.key;
  const int columns = panels(tile) * kP;
  bool any = false;
  if (tile.shared_bias) {
    const float* row = tile.bias_row[0] + first * stride;
    for (int j = 0; j < count; ++j) {
      const float b = row[j * stride];
      any = any || b != -kernels::kInfinity;
      std::fill_n(ws.bias_t + j * kQueryTile, columns, b);
    }
    return any;
  }
  for (int r = 0; r < columns; ++r) {
    const float* row = tile.bias_row[r] + first * stride;
    float* to = ws.bias_t + r;
    float largest = -kernels::kInfinity;
    bool ordered = true;
    for (int j = 0; j < count; ++j) {
      const float b = row[j * stride];
      to[j * kQueryTile] = b;
      largest = b > largest ? b : largest;
      ordered = ordered && b == b;
    }
    any = any || largest != -kernels::kInfinity || !ordered;
  }
  return any;
}

void hide_by_mask(const AttentionParams& p, const RowTile& tile, std::int32_t first, int count, float* scores_t) {
  const std::ptrdiff_t stride = p.mask_strides.key;
  const int columns = panels(tile) * kP;
  if (tile.shared_mask) {
    const std::uint8_t* row = tile.mask_row[0] + first * stride;
    for (int j = 0; j < count; ++j) {
      if (row[j * stride] == 0) std::fill_n(scores_t + j * kQueryTile, columns, -kernels::kInfinity);
    }
    return;
  }
  for (int r = 0; r < tile.count; ++r) {
    const std::uint8_t* row = tile.mask_row[r] + first * stride;
    for (int j = 0; j < count; ++j) {
      float& s = scores_t[j * kQueryTile + r];
      s = row[j * stride] != 0 ? s : -kernels::kInfinity;
    }
  }
}

/// Step 2 to 4 of attention on a tile: scores, then everything that happens to them before the softmax, up to `stage`, where `spans` say.
/// ws.bias_t holds the bias if there is one.
void scores_of_tile(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, const PanelSpans& spans,
                    MatrixStage stage, Workspace& ws) {
  const AttentionParams& p = work.params;
  const FloatRows key = key_rows(p, tile, first, count, ws);
  const int columns = panels(tile) * kP;
  kernels::score_tile<Arch>(key.data, key.stride, count, ws.queries, spans.of, panels(tile), p.head_dim, ws.scores, kQueryTile);
  if (stage == MatrixStage::scaled_scores) return;
  if (p.softcap > 0.0F) kernels::softcap_tile<Arch>(ws.scores, kQueryTile, count, columns, p.softcap);
  if (stage == MatrixStage::softcapped_scores) return;
  if (p.alibi_slopes != nullptr) kernels::alibi_tile<Arch>(ws.scores, kQueryTile, count, columns, first, tile.position, tile.slope);
  if (p.bias != nullptr) kernels::bias_tile<Arch>(ws.scores, kQueryTile, count, columns, ws.bias_t, kQueryTile);
  if (p.mask != nullptr) hide_by_mask(p, tile, first, count, ws.scores);
  for (const kernels::KeySpan& keys : partly_seen(tile, first, count).of) {
    kernels::range_tile<Arch>(ws.scores + keys.first * kQueryTile, kQueryTile, keys.last - keys.first, columns, first + keys.first,
                              tile.begin, tile.end);
  }
}

/// ws.acc = ws.acc * ws.rescale + weights * values of the tile.
void add_values(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, const PanelSpans& spans, bool first_tile,
                Workspace& ws) {
  const AttentionParams& p = work.params;
  const bool is_careful = hides_any_nonfinite(p, tile, first, count);
  if (is_careful || work.plan.packed_floats == 0) {
    const FloatRows value = value_rows(p, tile, first, count, ws);
    if (is_careful) {
      careful_weighted_sum(work, tile, ws, 1, kQueryTile, first, count, value.data, value.stride, first_tile);
    } else {
      kernels::weighted_sum_tile<Arch>(ws.scores, kQueryTile, tile.count, count, spans.of, value.data, value.stride, p.value_dim,
                                       ws.rescale, ws.acc, work.plan.acc_stride, first_tile, ws.tail);
    }
    return;
  }
  const float* const values = packed_values(work, tile, ws) + static_cast<std::ptrdiff_t>(first) * kP;
  kernels::weighted_sum_panels<Arch>(ws.scores, kQueryTile, tile.count, spans.of, values, work.plan.packed_stride, p.value_dim, ws.rescale,
                                     ws.acc, work.plan.acc_stride, first_tile);
}

}  // namespace

void prepare_tile_queries(const AttentionWork& work, const RowTile& tile, Workspace& ws) {
  kernels::pack_queries<Arch>(tile.query_row, tile.count, work.params.head_dim, work.params.scale, ws.queries);
}

void tile_scores(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, MatrixStage stage, Workspace& ws) {
  if (work.params.bias != nullptr) load_bias(work.params, tile, first, count, ws);
  scores_of_tile(work, tile, first, count, all_keys(count), stage, ws);
}

void run_tile(const AttentionWork& work, const RowTile& tile, KeyRange keys, bool first_chunk, Workspace& ws, bool& touched) {
  const AttentionParams& p = work.params;
  prepare_tile_queries(work, tile, ws);
  start_rows(p, tile, first_chunk, ws);
  touched = false;
  for (std::int32_t first = keys.begin; first < keys.end; first += work.plan.key_tile) {
    const int count = std::min(work.plan.key_tile, keys.end - first);
    if (p.mask != nullptr && !mask_shows_any(p, tile, first, count)) continue;
    if (p.bias != nullptr && !load_bias(p, tile, first, count, ws)) continue;
    const PanelSpans spans = seen_keys(tile, first, count);
    scores_of_tile(work, tile, first, count, spans, MatrixStage::masked_scores, ws);
    for (int panel = 0; panel < panels(tile); ++panel) {
      const int c = panel * kP;
      const kernels::KeySpan span = spans.of[panel];
      kernels::online_softmax_panel<Arch>(ws.scores + span.first * kQueryTile + c, kQueryTile, span.last - span.first, ws.row_max + c,
                                          ws.row_sum + c, ws.row_error + c, ws.rescale + c);
    }
    if (p.output != nullptr) add_values(work, tile, first, count, spans, !touched, ws);
    touched = true;
  }
}

}  // namespace attn::core
