// The [seq_len_q, seq_len_k] matrices that a caller may ask for. The scores are computed once more, by the same kernels in the same order as
// for the output, so what is returned is what was applied.

#include <algorithm>
#include <cmath>

#include "attn/parallel.h"
#include "core/attention_work.h"
#include "kernels/exp.hpp"

namespace attn::core {
namespace {

struct MatrixJob {
  const AttentionWork& work;
  std::int32_t rows_per_tile;
  std::int32_t row_tiles;
  /// matrices per batch row in the output
  std::int32_t matrices;
};

std::int32_t wanted_heads(const AttentionParams& p) { return p.matrix_heads != nullptr ? p.num_matrix_heads : p.num_heads; }

std::int32_t wanted_head(const AttentionParams& p, std::int32_t i) { return p.matrix_heads != nullptr ? p.matrix_heads[i] : i; }

/// weights of one row from its masked scores, `score(j)` of key first + j.
template <class ScoreOf>
void weight_row(const AttentionWork& work, const RowTile& tile, int r, std::int32_t first, int count, ScoreOf score, float share,
                float* to) {
  const AttentionParams& p = work.params;
  const std::int32_t h = tile.head[r];
  const std::int32_t t = tile.query[r];
  const std::ptrdiff_t row = (static_cast<std::ptrdiff_t>(tile.batch) * p.num_heads + h) * p.seq_len_q + t;
  const float sum = work.row_sum[row];
  if (!(sum > 0.0F)) {
    // No key is seen: 0. A NaN among the scores: every key that is seen has weight NaN, and the others still have 0.
    for (int j = 0; j < count; ++j) {
      const bool nan = sum != 0.0F && sees(p, tile.batch, h, t, first + j);
      to[j] += nan ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
    }
    return;
  }
  const float shift = work.row_max[row] == -kernels::kInfinity ? 0.0F : work.row_max[row];
  const float inverse = share / sum;
  using V = kernels::Vec<Arch>;
  constexpr int kW = kernels::kLanes<Arch>;
  const kernels::ExpNonPositive<Arch> exp;
  alignas(64) float lanes[kW];
  for (int j0 = 0; j0 < count; j0 += kW) {
    const int n = std::min(kW, count - j0);
    for (int i = 0; i < kW; ++i) lanes[i] = i < n ? score(j0 + i) : -kernels::kInfinity;
    const V w = exp(kernels::load<Arch>(lanes) - V(shift)) * V(inverse);
    kernels::store<Arch>(lanes, w);
    for (int i = 0; i < n; ++i) to[j0 + i] += lanes[i];
  }
}

/// One row of a matrix: keys first ... first + count - 1 of query `r` of the tile.
template <class ScoreOf>
void write_row(const MatrixJob& job, const RowTile& tile, int r, std::int32_t first, int count, ScoreOf score, float share, float* to) {
  if (job.work.params.matrix_stage == MatrixStage::weights) {
    weight_row(job.work, tile, r, first, count, score, share, to);
    return;
  }
  for (int j = 0; j < count; ++j) to[j] = score(j);
}

void run_head(const MatrixJob& job, std::int32_t b, std::int32_t h, std::int32_t tile_index, float share, float* matrix, Workspace& ws) {
  const AttentionWork& work = job.work;
  const AttentionParams& p = work.params;
  const std::int32_t first_query = tile_index * job.rows_per_tile;
  RowTile tile;
  fill_head_rows(p, b, h, first_query, std::min(job.rows_per_tile, p.seq_len_q - first_query), tile);
  const MatrixStage scores = std::min(p.matrix_stage, MatrixStage::masked_scores);
  if (work.plan.decode) {
    prepare_decode_queries(work, tile, ws);
  } else {
    prepare_tile_queries(work, tile, ws);
  }
  for (std::int32_t first = 0; first < p.seq_len_k; first += work.plan.key_tile) {
    const int count = std::min(work.plan.key_tile, p.seq_len_k - first);
    if (scores == MatrixStage::masked_scores && (first >= tile.some.end || first + count <= tile.some.begin)) {
      // Nothing is seen here: the keys need not be read.
      if (p.matrix_stage == MatrixStage::masked_scores) {
        for (int r = 0; r < tile.count; ++r) {
          std::fill_n(matrix + static_cast<std::ptrdiff_t>(tile.query[r]) * p.seq_len_k + first, count, -kernels::kInfinity);
        }
      }
      continue;
    }
    const std::ptrdiff_t stride = decode_scores_stride(work.plan);
    if (work.plan.decode) {
      decode_scores(work, tile, first, count, scores, ws);
    } else {
      tile_scores(work, tile, first, count, scores, ws);
    }
    for (int r = 0; r < tile.count; ++r) {
      float* to = matrix + static_cast<std::ptrdiff_t>(tile.query[r]) * p.seq_len_k + first;
      if (work.plan.decode) {
        const float* s = ws.scores + r * stride;
        write_row(job, tile, r, first, count, [s](int j) { return s[j]; }, share, to);
      } else {
        const float* s = ws.scores + r;
        write_row(job, tile, r, first, count, [s](int j) { return s[j * kQueryTile]; }, share, to);
      }
    }
  }
}

void run_item(void* context, std::int32_t item, std::int32_t thread) {
  const MatrixJob& job = *static_cast<const MatrixJob*>(context);
  const AttentionParams& p = job.work.params;
  Workspace ws = job.work.workspace(thread);
  const std::int32_t tile_index = item % job.row_tiles;
  const std::int32_t m = item / job.row_tiles % job.matrices;
  const std::int32_t b = item / job.row_tiles / job.matrices;
  float* matrix = p.matrix + (static_cast<std::ptrdiff_t>(b) * job.matrices + m) * p.seq_len_q * p.seq_len_k;
  // Weights are added up, over heads where their mean is wanted, so they start from 0.
  const std::int32_t first_query = tile_index * job.rows_per_tile;
  const std::int32_t rows = std::min(job.rows_per_tile, p.seq_len_q - first_query);
  std::fill_n(matrix + static_cast<std::ptrdiff_t>(first_query) * p.seq_len_k, static_cast<std::ptrdiff_t>(rows) * p.seq_len_k, 0.0F);
  if (!p.matrix_mean) {
    run_head(job, b, wanted_head(p, m), tile_index, 1.0F, matrix, ws);
    return;
  }
  const std::int32_t heads = wanted_heads(p);
  for (std::int32_t i = 0; i < heads; ++i) {
    run_head(job, b, wanted_head(p, i), tile_index, 1.0F / static_cast<float>(heads), matrix, ws);
  }
}

}  // namespace

void write_matrix(const AttentionWork& work) {
  const AttentionParams& p = work.params;
  const std::int32_t heads = wanted_heads(p);
  MatrixJob job{work, work.plan.decode ? p.seq_len_q : kQueryTile, 0, p.matrix_mean ? 1 : heads};
  if (heads == 0 || p.seq_len_q == 0 || p.seq_len_k == 0) return;
  job.row_tiles = (p.seq_len_q + job.rows_per_tile - 1) / job.rows_per_tile;
  const double scores = static_cast<double>(p.batch_size) * heads * p.seq_len_q * p.seq_len_k;
  parallel_for(p.batch_size * job.matrices * job.row_tiles, scores * (p.head_dim + 16), run_item, &job);
}

}  // namespace attn::core
