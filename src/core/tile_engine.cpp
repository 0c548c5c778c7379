// Prefill: tiles of up to kQueryTile queries go over all keys they see, tile by tile, with the online softmax (flash attention,
// arXiv:2205.14135). Nothing of size seq x seq exists.

#include <algorithm>

#include "core/attention_work.h"
#include "kernels/online_softmax.hpp"
#include "kernels/query_panel.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/tile_scores.hpp"
#include "kernels/weighted_sum.hpp"

namespace attn::core {
namespace {

constexpr int kP = kernels::kPanel<Arch>;
static_assert(kQueryTile % kP == 0, "a tile of queries must hold whole panels");

int panels(const RowTile& tile) { return (tile.count + kP - 1) / kP; }

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

/// Step 2 to 4 of attention on a tile: scores, then everything that happens to them before the softmax, up to `stage`.
/// ws.bias_t holds the bias if there is one.
void scores_of_tile(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, MatrixStage stage, Workspace& ws) {
  const AttentionParams& p = work.params;
  const FloatRows key = key_rows(p, tile, first, count, ws);
  const int columns = panels(tile) * kP;
  kernels::score_tile<Arch>(key.data, key.stride, count, ws.queries, panels(tile), p.head_dim, ws.scores, kQueryTile);
  if (stage == MatrixStage::scaled_scores) return;
  if (p.softcap > 0.0F) kernels::softcap_tile<Arch>(ws.scores, kQueryTile, count, columns, p.softcap);
  if (stage == MatrixStage::softcapped_scores) return;
  if (p.alibi_slopes != nullptr) kernels::alibi_tile<Arch>(ws.scores, kQueryTile, count, columns, first, tile.position, tile.slope);
  if (p.bias != nullptr) kernels::bias_tile<Arch>(ws.scores, kQueryTile, count, columns, ws.bias_t, kQueryTile);
  if (p.mask != nullptr) hide_by_mask(p, tile, first, count, ws.scores);
  if (first < tile.every.begin || first + count > tile.every.end) {
    kernels::range_tile<Arch>(ws.scores, kQueryTile, count, columns, first, tile.begin, tile.end);
  }
}

}  // namespace

void prepare_tile_queries(const AttentionWork& work, const RowTile& tile, Workspace& ws) {
  kernels::pack_queries<Arch>(tile.query_row, tile.count, work.params.head_dim, work.params.scale, ws.queries);
}

void tile_scores(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, MatrixStage stage, Workspace& ws) {
  if (work.params.bias != nullptr) load_bias(work.params, tile, first, count, ws);
  scores_of_tile(work, tile, first, count, stage, ws);
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
    scores_of_tile(work, tile, first, count, MatrixStage::masked_scores, ws);
    for (int panel = 0; panel < panels(tile); ++panel) {
      const int c = panel * kP;
      kernels::online_softmax_panel<Arch>(ws.scores + c, kQueryTile, count, ws.row_max + c, ws.row_sum + c, ws.row_error + c,
                                          ws.rescale + c);
    }
    if (p.output != nullptr) {
      const FloatRows value = value_rows(p, tile, first, count, ws);
      if (may_hide(p, tile, first, count) && !kernels::all_finite<Arch>(value.data, value.stride, count, p.value_dim)) {
        careful_weighted_sum(work, tile, ws, 1, kQueryTile, first, count, value.data, value.stride, !touched);
      } else {
        kernels::weighted_sum_tile<Arch>(ws.scores, kQueryTile, tile.count, count, value.data, value.stride, p.value_dim, ws.rescale,
                                         ws.acc, work.plan.acc_stride, !touched, ws.tail);
      }
    }
    touched = true;
  }
}

}  // namespace attn::core
