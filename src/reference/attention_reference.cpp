#include "attention_reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "half.h"

// Plain on purpose: one function per symbol of the formula, one row at a time, no tiles and no tricks.
// Positions are int64, so that no offset or window can overflow.

namespace attn::reference {
namespace {

using Index = std::ptrdiff_t;

/// One query row: batch row b, query head h, query t, and the key/value head g that it reads.
struct Row {
  Index b, h, g, t;
};

template <typename Real>
Real key_or_value(const AttentionParams& p, const void* data, const Strides& strides, const Row& row, Index s, Index i) {
  const Index at = row.b * strides.batch + row.g * strides.head + s * strides.row + i;
  return p.kv_type == KvType::f16 ? static_cast<Real>(half_value(static_cast<const std::uint16_t*>(data)[at]))
                                  : static_cast<Real>(static_cast<const float*>(data)[at]);
}

/// Index of a mask or bias entry; a stride of 0 repeats the entry along that axis.
Index score_index(const ScoreStrides& strides, const Row& row, Index s) {
  return row.b * strides.batch + row.h * strides.head + row.t * strides.query + s * strides.key;
}

/// p = t + offset, the position of the query among the keys.
std::int64_t position(const AttentionParams& p, const Row& row) {
  return std::int64_t{row.t} + (p.query_offsets != nullptr ? p.query_offsets[row.b] : p.query_offset);
}

/// Who sees whom.
bool visible(const AttentionParams& p, const Row& row, Index s) {
  const std::int64_t own = position(p, row);
  if (p.key_lengths != nullptr && s >= p.key_lengths[row.b]) return false;
  if (p.causal && s > own) return false;
  if (p.window_left >= 0 && s < own - p.window_left) return false;
  if (p.window_right >= 0 && s > own + p.window_right) return false;
  if (p.mask != nullptr && p.mask[score_index(p.mask_strides, row, s)] == 0) return false;
  if (p.bias != nullptr && p.bias[score_index(p.bias_strides, row, s)] == -std::numeric_limits<float>::infinity()) return false;
  return true;
}

/// scale * dot(query, key)
template <typename Real>
Real scaled_score(const AttentionParams& p, const Row& row, Index s) {
  const float* query = p.query + row.b * p.query_strides.batch + row.h * p.query_strides.head + row.t * p.query_strides.row;
  Real dot = 0;
  for (Index i = 0; i < p.head_dim; ++i) {
    dot += static_cast<Real>(query[i]) * key_or_value<Real>(p, p.key, p.key_strides, row, s, i);
  }
  return static_cast<Real>(p.scale) * dot;
}

/// softcap * tanh(score / softcap); 0 = off
template <typename Real>
Real softcapped(const AttentionParams& p, Real score) {
  const Real cap = static_cast<Real>(p.softcap);
  return p.softcap == 0.0F ? score : cap * std::tanh(score / cap);
}

/// What is added to the score of a visible key: ALiBi and bias.
template <typename Real>
Real added(const AttentionParams& p, const Row& row, Index s) {
  Real sum = 0;
  if (p.alibi_slopes != nullptr) {
    const std::int64_t distance = position(p, row) - s;
    sum -= static_cast<Real>(p.alibi_slopes[row.h]) * static_cast<Real>(distance < 0 ? -distance : distance);
  }
  if (p.bias != nullptr) sum += static_cast<Real>(p.bias[score_index(p.bias_strides, row, s)]);
  return sum;
}

/// The row of scores at every stage.
template <typename Real>
struct ScoreRow {
  std::vector<Real> scaled, capped, masked, weights;
  Real lse;
};

template <typename Real>
ScoreRow<Real> score_row(const AttentionParams& p, const Row& row) {
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const auto keys = static_cast<std::size_t>(p.seq_len_k);
  ScoreRow<Real> r{std::vector<Real>(keys), std::vector<Real>(keys), std::vector<Real>(keys, -infinity), std::vector<Real>(keys),
                   -infinity};
  std::vector<bool> sees(keys);

  for (std::size_t s = 0; s < keys; ++s) {
    const auto key = static_cast<Index>(s);
    sees[s] = visible(p, row, key);
    // The first two stages exist for hidden keys too; only a caller who asks for them makes these be read.
    const bool wanted = p.matrix_stage == MatrixStage::scaled_scores || p.matrix_stage == MatrixStage::softcapped_scores;
    if (!sees[s] && !wanted) continue;
    r.scaled[s] = scaled_score<Real>(p, row, key);
    r.capped[s] = softcapped(p, r.scaled[s]);
    if (sees[s]) r.masked[s] = r.capped[s] + added<Real>(p, row, key);
  }

  // softmax: exp(score - max) / sum. The sink is one more score without a value; a sink of -inf is none.
  const Real sink = p.sinks != nullptr ? static_cast<Real>(p.sinks[row.h]) : -infinity;
  const bool has_sink = sink != -infinity;
  bool empty = !has_sink;
  Real row_max = sink;
  for (std::size_t s = 0; s < keys; ++s) {
    if (!sees[s]) continue;
    empty = false;
    row_max = std::max(row_max, r.masked[s]);  // a NaN is dropped here and seen by the sum
  }
  if (empty) return r;  // no key and no sink: weights 0 and lse -inf, where -inf - -inf would be NaN

  Real row_sum = has_sink ? std::exp(sink - row_max) : Real{0};
  for (std::size_t s = 0; s < keys; ++s) {
    if (!sees[s]) continue;
    r.weights[s] = std::exp(r.masked[s] - row_max);
    row_sum += r.weights[s];
  }
  for (std::size_t s = 0; s < keys; ++s) {
    if (sees[s]) r.weights[s] /= row_sum;
  }
  r.lse = row_max + std::log(row_sum);
  return r;
}

/// output[d] = sum of weight * value over the visible keys; 0 * NaN of a hidden key would be NaN.
template <typename Real>
void weighted_sum(const AttentionParams& p, const Row& row, const std::vector<Real>& weights, Real* output) {
  for (Index s = 0; s < p.seq_len_k; ++s) {
    if (!visible(p, row, s)) continue;
    for (Index d = 0; d < p.value_dim; ++d) {
      output[d] += weights[static_cast<std::size_t>(s)] * key_or_value<Real>(p, p.value, p.value_strides, row, s, d);
    }
  }
}

template <typename Real>
const std::vector<Real>& stage_of(const ScoreRow<Real>& row, MatrixStage stage) {
  switch (stage) {
    case MatrixStage::scaled_scores: return row.scaled;
    case MatrixStage::softcapped_scores: return row.capped;
    case MatrixStage::masked_scores: return row.masked;
    default: return row.weights;
  }
}

template <typename Real>
AttentionResult<Real> run(const AttentionParams& p) {
  const auto size = [](auto... factors) { return (std::size_t{1} * ... * static_cast<std::size_t>(factors)); };
  const Index wanted = p.matrix_heads != nullptr ? p.num_matrix_heads : p.num_heads;
  const Index planes = p.matrix_stage == MatrixStage::none ? 0 : (p.matrix_mean ? 1 : wanted);

  AttentionResult<Real> result;
  result.output.resize(size(p.batch_size, p.num_heads, p.seq_len_q, p.value_dim));
  result.lse.resize(size(p.batch_size, p.num_heads, p.seq_len_q));
  result.matrix.resize(size(p.batch_size, planes, p.seq_len_q, p.seq_len_k));

  for (Index b = 0; b < p.batch_size; ++b) {
    for (Index h = 0; h < p.num_heads; ++h) {
      for (Index t = 0; t < p.seq_len_q; ++t) {
        const Row row{b, h, h / (p.num_heads / p.num_kv_heads), t};
        const ScoreRow<Real> scores = score_row<Real>(p, row);
        const Index at = (b * p.num_heads + h) * p.seq_len_q + t;
        weighted_sum(p, row, scores.weights, result.output.data() + at * p.value_dim);
        result.lse[static_cast<std::size_t>(at)] = scores.lse;

        for (Index n = 0; planes > 0 && n < wanted; ++n) {
          if ((p.matrix_heads != nullptr ? p.matrix_heads[n] : n) != h) continue;
          const Index plane = p.matrix_mean ? 0 : n;
          const Real share = p.matrix_mean ? Real{1} / static_cast<Real>(wanted) : Real{1};
          Real* matrix_row = result.matrix.data() + ((b * planes + plane) * p.seq_len_q + t) * p.seq_len_k;
          const std::vector<Real>& stage = stage_of(scores, p.matrix_stage);
          for (Index s = 0; s < p.seq_len_k; ++s) matrix_row[s] += share * stage[static_cast<std::size_t>(s)];
        }
      }
    }
  }
  return result;
}

}  // namespace

AttentionResult<double> attention(const AttentionParams& params) { return run<double>(params); }
AttentionResult<float> attention_plain_f32(const AttentionParams& params) { return run<float>(params); }

}  // namespace attn::reference
