// USER-CASES part N, by hand: ln 3 gives softmax rows of 1/4 and 3/4. What belongs to one option is tested beside that option.

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/compare.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

const float kLn3 = std::log(3.0F);

void check_output(Problem& problem, const std::vector<double>& want, double tolerance = kClosedForm) {
  problem.run();
  INFO(problem.describe());
  const std::vector<float> got = dense_output(problem);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i << ": got " << got[i] << ", expected " << want[i]);
    CHECK(agrees(got[i], want[i], tolerance));
  }
}

}  // namespace

TEST_CASE("N11: scores of 1000, -1000 and 3e4 stay finite", "[attention][numbers]") {
  const auto run = [](std::initializer_list<float> scores, const std::vector<float>& want) {
    const int keys = static_cast<int>(scores.size());
    for (const int queries : {1, 3, 33}) {
      Problem p({.seq_q = queries, .seq_k = keys, .value_dim = keys});
      p.set_key(scores);
      for (float& x : p.query) x = 1.0F;
      for (int s = 0; s < keys; ++s) p.v(0, 0, s, s) = 1.0F;  // the output is the row of weights
      p.want_matrix(MatrixStage::weights);
      p.run();
      for (int t = 0; t < queries; ++t) {
        for (int s = 0; s < keys; ++s) {
          const float weight = want[static_cast<std::size_t>(s)];
          CHECK(p.out(0, 0, t, s) == weight);
          CHECK(p.matrix_at(0, 0, t, s) == weight);
        }
      }
    }
  };
  run({1000, 1000}, {0.5F, 0.5F});
  run({-1000, -1000}, {0.5F, 0.5F});
  run({1000, 0}, {1, 0});
  run({0, 1000}, {0, 1});
  run({3e4F, 3e4F, -3e4F}, {0.5F, 0.5F, 0});
  run({-3e4F, 3e4F, 3e4F}, {0, 0.5F, 0.5F});
}

TEST_CASE("N11: inputs up to 1e15 with width 64 stay finite", "[attention][numbers]") {
  Random random("inputs up to 1e15");
  for (const int queries : {1, 40}) {
    Problem p({.seq_q = queries, .seq_k = 150, .head_dim = 64, .value_dim = 3});
    p.fill_random(random);
    for (float& x : p.query) x *= 1e15F;
    for (float& x : p.key) x *= 1e15F;
    p.options.scale = 0.125F;
    p.want_matrix(MatrixStage::weights);
    p.run();
    bool finite = true;
    for (const float x : p.output) finite = finite && std::fabs(x) <= 1.0F;
    for (const float x : p.lse) finite = finite && std::isfinite(x);
    for (int t = 0; t < queries; ++t) {
      finite = finite && std::fabs(p.row_sum(0, 0, t) - 1.0) <= kRowSum;
    }
    CHECK(finite);
  }
}

TEST_CASE("N13: value width differs from head width", "[attention][shapes]") {
  Problem p({.seq_q = 1, .seq_k = 2, .head_dim = 2, .value_dim = 5});
  p.set_query({1, 0});
  p.set_key({0, 0, kLn3, 0});
  p.set_value({0, 4, 8, 12, 16, 4, 8, 12, 16, 20});
  check_output(p, {3, 7, 11, 15, 19}, 20 * kClosedForm);
}

TEST_CASE("N15: scale multiplies q·k", "[attention][scale]") {
  Problem p({.seq_q = 1, .seq_k = 2, .head_dim = 4, .value_dim = 2});
  p.set_query({2, 0, 0, 0});
  p.set_key({0, 0, 0, 0, kLn3, 0, 0, 0});
  p.set_value({1, 0, 0, 1});
  p.options.scale = 0.5F;  // 1 / sqrt(4)
  check_output(p, {0.25, 0.75});
  p.options.scale = 1.0F;
  check_output(p, {0.1, 0.9});
  p.options.scale = 0.0F;
  check_output(p, {0.5, 0.5});
  p.options.scale = -0.5F;
  check_output(p, {0.75, 0.25});
}

TEST_CASE("N24: softcap * tanh(score / softcap)", "[attention][softcap]") {
  for (const int queries : {1, 9}) {
    Problem p({.seq_q = queries, .seq_k = 3});
    for (float& x : p.query) x = 1.0F;
    p.set_key({0.5F, -0.5F, 3e38F});
    p.options.softcap = 1.0F;
    p.want_matrix(MatrixStage::softcapped_scores);
    check_against_reference(p);
    CHECK(agrees(p.matrix_at(0, 0, queries - 1, 0), 0.4621172, kClosedForm));
    CHECK(agrees(p.matrix_at(0, 0, queries - 1, 1), -0.4621172, kClosedForm));
    CHECK(p.matrix_at(0, 0, queries - 1, 2) == 1.0F);

    // Raw scores are raw: no cap in the first stage.
    p.want_matrix(MatrixStage::scaled_scores);
    p.run();
    CHECK(p.matrix_at(0, 0, 0, 0) == 0.5F);
    CHECK(p.matrix_at(0, 0, 0, 2) == 3e38F);
  }
}

TEST_CASE("softcap comes before mask and bias: a hidden key stays hidden", "[attention][softcap]") {
  Problem p({.seq_q = 1, .seq_k = 2});
  p.set_value({3, 100});
  p.options.softcap = 1.0F;
  p.add_bias(1, 1, 1, 2);
  p.bias[1] = -INFINITY;
  check_output(p, {3});
  // A bias beyond the cap counts in full.
  p.bias[1] = -50.0F;
  check_output(p, {3});
}

TEST_CASE("softcap over many magnitudes and caps agrees with the reference", "[attention][softcap]") {
  Random random("softcap");
  for (const float cap : {0.01F, 0.5F, 1.0F, 30.0F, 50.0F, 1e4F, 1e30F}) {
    for (const double amplitude : {1e-3, 1.0, 10.0, 1e3}) {
      Problem p({.seq_q = 9, .seq_k = 140, .head_dim = 4, .value_dim = 2});
      p.fill_random(random, amplitude);
      p.options.softcap = cap;
      p.want_matrix(MatrixStage::softcapped_scores);
      check_against_reference(p);
    }
  }
}

TEST_CASE("ALiBi subtracts slope * distance", "[attention][alibi]") {
  Problem p({.heads = 2, .kv_heads = 2, .seq_q = 2, .seq_k = 3});
  p.alibi_slopes = Buffer<float>(2);
  p.alibi_slopes[0] = 0.5F;
  p.alibi_slopes[1] = 2.0F;
  p.options.query_offset = 1;
  p.want_matrix(MatrixStage::masked_scores);
  p.run();
  const float distance[2][3] = {{1, 0, 1}, {2, 1, 0}};
  for (int t = 0; t < 2; ++t) {
    for (int s = 0; s < 3; ++s) {
      CHECK(p.matrix_at(0, 0, t, s) == -0.5F * distance[t][s]);
      CHECK(p.matrix_at(0, 1, t, s) == -2.0F * distance[t][s]);
    }
  }
}

TEST_CASE("ALiBi distances from positions at the ends of int32 do not wrap around", "[attention][alibi]") {
  for (const std::int32_t offset : {std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min(), 1 << 30}) {
    for (const int queries : {1, 3, 40}) {
      Problem p({.seq_q = queries, .seq_k = 9});
      p.alibi_slopes = Buffer<float>(1);
      p.alibi_slopes[0] = 0x1p-30F;
      p.options.query_offset = offset;
      p.want_matrix(MatrixStage::masked_scores);
      check_against_reference(p);
    }
  }
}

TEST_CASE("a sink takes its share and gives nothing", "[attention][sinks]") {
  Problem p({.heads = 2, .kv_heads = 1, .seq_q = 2, .seq_k = 2});
  p.set_value({8, 8});
  p.sinks = Buffer<float>(2);
  p.sinks[0] = std::log(2.0F);  // as heavy as the two keys together
  p.sinks[1] = -INFINITY;       // weighs nothing
  p.want_matrix(MatrixStage::weights);
  check_output(p, {4, 4, 8, 8}, 8 * kClosedForm);
  CHECK(agrees(p.matrix_at(0, 0, 0, 0), 0.25, kClosedForm));
  CHECK(agrees(p.lse_at(0, 0, 0), std::log(4.0), kClosedForm));
  CHECK(agrees(p.lse_at(0, 1, 0), std::log(2.0), kClosedForm));
}

TEST_CASE("sinks far above and far below the scores", "[attention][sinks]") {
  for (const float sink : {-1e30F, -1000.0F, -100.0F, 100.0F, 1000.0F, 1e30F}) {
    for (const int queries : {1, 10}) {
      Problem p({.seq_q = queries, .seq_k = 3});
      p.set_value({1, 2, 3});
      p.sinks = Buffer<float>(1);
      p.sinks[0] = sink;
      p.want_matrix(MatrixStage::weights);
      check_against_reference(p);
      CHECK(agrees(p.out(0, 0, queries - 1, 0), sink < 0 ? 2.0 : 0.0, 4e-6));
    }
  }
}

TEST_CASE("N28: small weights are small, never NaN and never negative", "[attention][numbers]") {
  for (const int queries : {1, 9}) {
    Problem p({.seq_q = queries, .seq_k = 2});
    for (float& x : p.query) x = 1.0F;
    p.want_matrix(MatrixStage::weights);
    p.set_key({0, -80});
    p.run();
    CHECK(agrees(p.matrix_at(0, 0, 0, 1), 1.804851e-35, 1e-5 * 1.8e-35));
    p.set_key({0, -100});
    p.run();
    const float w = p.matrix_at(0, 0, queries - 1, 1);
    CHECK((w >= 0.0F && w <= 3.9e-44F));
  }
}
