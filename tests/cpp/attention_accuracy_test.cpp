// The yardstick: an error against float64 of no more than twice that of plain float32 loops. Prints the table of errors.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

#include "reference/attention_reference.h"
#include "support/problem.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

/// Largest and mean-square error over all elements of all draws.
struct Error {
  double largest = 0;
  double squares = 0;
  double count = 0;

  template <typename Got>
  void add(const Got& got, const std::vector<double>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double error = std::fabs(static_cast<double>(got[i]) - want[i]);
      largest = std::max(largest, error);
      squares += error * error;
      count += 1;
    }
  }
  [[nodiscard]] double root_mean_square() const { return std::sqrt(squares / count); }
};

struct Row {
  Error output, plain_output, weights, plain_weights, lse, plain_lse;
};

/// Queries and keys such that the largest score is about `largest_score`.
Row measure(Random& random, int queries, int keys, double largest_score, int draws) {
  const int width = 64;
  Row row;
  for (int draw = 0; draw < draws; ++draw) {
    Problem p({.heads = 1, .kv_heads = 1, .seq_q = queries, .seq_k = keys, .head_dim = width, .value_dim = 32});
    p.fill_random(random);
    double largest = 0;
    for (int t = 0; t < queries; ++t) {
      for (int s = 0; s < keys; ++s) {
        double dot = 0;
        for (int i = 0; i < width; ++i) dot += double{p.q(0, 0, t, i)} * double{p.k(0, 0, s, i)};
        largest = std::max(largest, std::fabs(dot));
      }
    }
    p.options.scale = 0.125F;
    for (float& x : p.query) x *= static_cast<float>(8 * largest_score / largest);
    p.want_matrix(MatrixStage::weights);
    p.run();
    const auto want = reference::attention(p.params());
    const auto plain = reference::attention_plain_f32(p.params());
    row.output.add(p.output, want.output);
    row.plain_output.add(plain.output, want.output);
    row.weights.add(p.matrix, want.matrix);
    row.plain_weights.add(plain.matrix, want.matrix);
    row.lse.add(p.lse, want.lse);
    row.plain_lse.add(plain.lse, want.lse);
  }
  return row;
}

/// Values and weights are at most 1, so below a quarter epsilon of 1 there is nothing left to compare.
bool no_more_than_twice(const Error& kernel, const Error& plain) {
  return kernel.largest <= kTimesPlain * plain.largest + kEpsilon / 4 &&
         kernel.root_mean_square() <= kTimesPlain * plain.root_mean_square() + kEpsilon / 16;
}

}  // namespace

TEST_CASE("error against float64 is at most twice that of plain float32 loops", "[attention][accuracy]") {
  Random random("accuracy");
  std::printf("\nlargest error against float64          output              weights             log-sum-exp\n");
  std::printf("largest score  queries  keys     kernel    plain     kernel    plain     kernel    plain\n");
  for (const double largest_score : {1.0, 10.0, 100.0}) {
    for (const int queries : {1, 33}) {
      for (const int keys : {16, 128, 1024, 4096}) {
        const int draws = std::clamp(4096 / keys, 2, 16);
        const Row row = measure(random, queries, keys, largest_score, draws);
        std::printf("%13g %8d %5d  %9.2e %9.2e %9.2e %9.2e %9.2e %9.2e\n", largest_score, queries, keys, row.output.largest,
                    row.plain_output.largest, row.weights.largest, row.plain_weights.largest, row.lse.largest, row.plain_lse.largest);
        INFO("largest score " << largest_score << ", queries " << queries << ", keys " << keys);
        CHECK(no_more_than_twice(row.output, row.plain_output));
        CHECK(no_more_than_twice(row.weights, row.plain_weights));
        CHECK(row.lse.largest <= kTimesPlain * row.plain_lse.largest + kEpsilon * largest_score);
      }
    }
  }
  std::fflush(stdout);
}
