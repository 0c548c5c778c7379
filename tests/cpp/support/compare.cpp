#include "support/compare.h"

#include <algorithm>
#include <bit>
#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <sstream>
#include <vector>

#include "reference/attention_reference.h"
#include "reference/half.h"
#include "support/tolerance.h"

namespace attn::test {
namespace {

/// The element that uses up most of its tolerance; one assertion per tensor keeps Catch fast.
class Worst {
 public:
  explicit Worst(const char* what) : what_(what) {}
  void add(double got, double want, double tolerance, int b, int h, int row, int last) {
    if (agrees(got, want, tolerance)) return;
    if (failures_++ == 0)
      first_ << what_ << '[' << b << ", " << h << ", " << row << ", " << last << "]: got " << got << ", expected " << want << ", tolerance "
             << tolerance;
  }
  void check() const {
    INFO(first_.str() << " (" << failures_ << " elements)");
    CHECK(failures_ == 0);
  }

 private:
  const char* what_;
  int failures_ = 0;
  std::ostringstream first_;
};

double read_kv(const AttentionParams& p, const void* data, const Strides& strides, int b, int g, int s, int i) {
  const std::ptrdiff_t at = b * strides.batch + g * strides.head + s * strides.row + i;
  return p.kv_type == KvType::f16 ? static_cast<double>(reference::half_value(static_cast<const std::uint16_t*>(data)[at]))
                                  : static_cast<double>(static_cast<const float*>(data)[at]);
}

/// How far off the scores of one row may be, each before and after softcap and additions.
struct ScoreErrors {
  std::vector<double> scaled, capped, masked;
};

ScoreErrors score_errors(const AttentionParams& p, int b, int h, int t) {
  const int g = h / (p.num_heads / p.num_kv_heads);
  const float* query = p.query + b * p.query_strides.batch + h * p.query_strides.head + t * p.query_strides.row;
  ScoreErrors e;
  for (int s = 0; s < p.seq_len_k; ++s) {
    double magnitude = 0;
    for (int i = 0; i < p.head_dim; ++i) magnitude += std::fabs(double{query[i]} * read_kv(p, p.key, p.key_strides, b, g, s, i));
    magnitude *= std::fabs(double{p.scale});
    if (!std::isfinite(magnitude)) magnitude = 0;  // the score is infinite or NaN, or capped exactly
    double added = 0;
    if (p.alibi_slopes != nullptr) {
      const double position = double(t) + (p.query_offsets != nullptr ? p.query_offsets[b] : p.query_offset);
      added += std::fabs(double{p.alibi_slopes[h]} * (position - s));
    }
    if (p.bias != nullptr) {
      const float bias = p.bias[b * p.bias_strides.batch + h * p.bias_strides.head + t * p.bias_strides.query + s * p.bias_strides.key];
      if (std::isfinite(bias)) added += std::fabs(double{bias});
    }
    e.scaled.push_back(score_error(magnitude));
    e.capped.push_back(score_error(magnitude) + softcap_error(p.softcap));
    e.masked.push_back(e.capped.back() + score_error(added + magnitude));
  }
  return e;
}

const std::vector<double>& errors_of(const ScoreErrors& errors, MatrixStage stage) {
  if (stage == MatrixStage::scaled_scores) return errors.scaled;
  if (stage == MatrixStage::softcapped_scores) return errors.capped;
  return errors.masked;
}

/// A sum of NaN or infinite tolerances must not wave everything through.
double usable(double tolerance) { return std::isfinite(tolerance) ? tolerance : 0.0; }

}  // namespace

bool agrees(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= tolerance;  // false for NaN
}

void compare_with_reference(Problem& problem) {
  INFO(problem.describe());
  const AttentionParams p = problem.params();
  const auto want = reference::attention(p);

  AttentionParams all_weights = p;
  all_weights.matrix_stage = MatrixStage::weights;
  all_weights.matrix_heads = nullptr;
  all_weights.matrix_mean = false;
  const auto weights = reference::attention(all_weights).matrix;

  const Shape& shape = problem.shape;
  const int wanted = p.matrix_heads != nullptr ? p.num_matrix_heads : p.num_heads;
  const auto keys = static_cast<double>(shape.seq_k);
  Worst worst_output("output");
  Worst worst_lse("lse");
  Worst worst_matrix("matrix");
  std::vector<double> matrix_tolerance(problem.matrix.size(), 0.0);
  std::size_t row = 0;
  for (int b = 0; b < shape.batch; ++b) {
    for (int h = 0; h < shape.heads; ++h) {
      const int g = h / (shape.heads / shape.kv_heads);
      for (int t = 0; t < shape.seq_q; ++t, ++row) {
        const double* w = weights.data() + row * static_cast<std::size_t>(shape.seq_k);
        const ScoreErrors errors = score_errors(p, b, h, t);

        // d log(sum exp(score)) = sum of weight * d score
        double sum_shift = 0;
        for (int s = 0; s < shape.seq_k; ++s) sum_shift += w[s] > 0 ? w[s] * errors.masked[static_cast<std::size_t>(s)] : 0.0;
        const double sink_error = p.sinks != nullptr && std::isfinite(p.sinks[h]) ? score_error(std::fabs(p.sinks[h])) : 0.0;
        sum_shift += sink_error;
        const auto weight_tolerance = [&](int s) {
          const double relative = std::expm1(errors.masked[static_cast<std::size_t>(s)] + sum_shift) + weight_error(keys);
          return w[s] == 0 ? 0.0 : usable(w[s] * relative) + kExpAbsolute;  // hidden keys: exactly 0
        };

        if (problem.want_lse) {
          const double lse = want.lse[row];
          worst_lse.add(problem.lse_at(b, h, t), lse, usable(sum_shift + weight_error(keys) + kEpsilon * std::fabs(lse)), b, h, t, 0);
        }
        for (int i = 0; problem.want_output && i < shape.value_dim; ++i) {
          double tolerance = kExpAbsolute;
          for (int s = 0; s < shape.seq_k; ++s) {
            if (w[s] == 0) continue;
            const double value = std::fabs(read_kv(p, p.value, p.value_strides, b, g, s, i));
            tolerance += value * (weight_tolerance(s) + w[s] * weighted_sum_error(keys));
          }
          worst_output.add(problem.out(b, h, t, i),
                           want.output[row * static_cast<std::size_t>(shape.value_dim) + static_cast<std::size_t>(i)], usable(tolerance), b,
                           h, t, i);
        }
        for (int n = 0; problem.num_matrices() > 0 && n < wanted; ++n) {
          if ((p.matrix_heads != nullptr ? p.matrix_heads[n] : n) != h) continue;
          const double share = p.matrix_mean ? 1.0 / wanted : 1.0;
          for (int s = 0; s < shape.seq_k; ++s) {
            const float* element = &problem.matrix_at(b, p.matrix_mean ? 0 : n, t, s);
            const double tolerance = p.matrix_stage == MatrixStage::weights
                                         ? weight_tolerance(s) + 2 * kEpsilon * w[s]
                                         : usable(errors_of(errors, p.matrix_stage)[static_cast<std::size_t>(s)]);
            matrix_tolerance[static_cast<std::size_t>(element - problem.matrix.data())] += share * tolerance;
          }
        }
      }
    }
  }
  for (std::size_t i = 0; i < problem.matrix.size(); ++i) {
    const auto s = static_cast<int>(i % static_cast<std::size_t>(shape.seq_k));
    const auto t = static_cast<int>(i / static_cast<std::size_t>(shape.seq_k) % static_cast<std::size_t>(shape.seq_q));
    const auto plane = static_cast<int>(i / static_cast<std::size_t>(shape.seq_k) / static_cast<std::size_t>(shape.seq_q));
    worst_matrix.add(problem.matrix[i], want.matrix[i], matrix_tolerance[i], plane / problem.num_matrices(), plane % problem.num_matrices(),
                     t, s);
  }
  worst_output.check();
  worst_lse.check();
  worst_matrix.check();
}

void check_against_reference(Problem& problem) {
  problem.run();
  compare_with_reference(problem);
}

bool same_bits(Problem& a, Problem& b) {
  const std::vector<float> x = dense_output(a);
  const std::vector<float> y = dense_output(b);
  const auto equal = [](float left, float right) { return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right); };
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal) && a.lse == b.lse && a.matrix == b.matrix;
}

void check_same_output(Problem& a, Problem& b, double tolerance) {
  INFO(a.describe());
  INFO(b.describe());
  const std::vector<float> x = dense_output(a);
  const std::vector<float> y = dense_output(b);
  REQUIRE(x.size() == y.size());
  Worst worst("output");
  for (std::size_t i = 0; i < x.size(); ++i) worst.add(x[i], y[i], tolerance, 0, 0, 0, static_cast<int>(i));
  worst.check();
}

}  // namespace attn::test
