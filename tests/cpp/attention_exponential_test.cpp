// The exponential, seen through the weights and the output of a softmax over two keys with scores 0 and x.

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/problem.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

/// weight of x beside 0: e^x / (1 + e^x)
void check_row(double x, double got, bool& good, double& worst) {
  const double want = std::exp(x) / (1 + std::exp(x));
  if (x > kExpLimit) worst = std::max(worst, std::fabs(got - want) / want);
  good = good && got >= 0 && std::fabs(got - want) <= (x > kExpLimit ? kExpRelative * want : kExpAbsolute);
}

/// `queries` rows a call, so that both the tile path and the path for few rows are walked.
void check_all(int first, int last, int queries) {
  bool good = true;
  double worst = 0;
  Problem p({.seq_q = queries, .seq_k = 2});
  p.set_key({0, 1});  // scores q * 0 and q * 1
  p.set_value({0, 1});
  p.want_matrix(MatrixStage::weights);
  for (int n = first; n <= last; n += queries) {
    for (int t = 0; t < queries; ++t) p.q(0, 0, t, 0) = static_cast<float>(-0.001 * std::min(n + t, last));
    p.run();
    for (int t = 0; t < queries; ++t) {
      const double x = p.q(0, 0, t, 0);
      check_row(x, p.matrix_at(0, 0, t, 1), good, worst);
      check_row(x, p.out(0, 0, t, 0), good, worst);
    }
  }
  INFO("worst relative error above -87: " << worst);
  CHECK(good);
}

}  // namespace

TEST_CASE("N28: the exponential on -100..0 in steps of 0.001", "[attention][exponential]") { check_all(0, 100000, 500); }

TEST_CASE("N28: the same through the path for few rows", "[attention][exponential][decode]") {
  check_all(0, 3000, 1);
  check_all(86000, 89000, 1);
  check_all(20000, 24000, 3);
}

TEST_CASE("N28: beyond -100 weights are 0", "[attention][exponential]") {
  for (const int queries : {1, 9}) {
    Problem p({.seq_q = queries, .seq_k = 2});
    p.set_key({0, 1});
    p.want_matrix(MatrixStage::weights);
    for (const float x : {-104.0F, -200.0F, -1e4F, -1e9F, -1e30F, -3e38F}) {
      for (float& q : p.query) q = x;
      p.run();
      CHECK(p.matrix_at(0, 0, queries - 1, 0) == 1.0F);
      CHECK(p.matrix_at(0, 0, queries - 1, 1) == 0.0F);
    }
  }
}
