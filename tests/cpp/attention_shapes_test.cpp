// Every length and width, and the sizes where tiles, panels and lanes begin and end.

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/compare.h"

using namespace attn;
using namespace attn::test;

namespace {

/// Walks 1..70 in another order for each step that is coprime to 70, so that few triples meet every single value.
int walk(int n, int step) { return 1 + (n * step) % 70; }

Shape shape_of(int n) { return {.seq_q = walk(n, 27), .seq_k = walk(n, 1), .head_dim = walk(n, 11), .value_dim = walk(n, 43)}; }

Shape cube(int n) { return {.seq_q = n, .seq_k = n, .head_dim = n, .value_dim = n}; }

void check_closed_forms(const Shape& shape) {
  Random random("closed forms");
  Problem ones(shape);
  ones.fill_random(random);
  for (float& x : ones.value) x = 1.0F;
  Problem mean(shape);
  for (int s = 0; s < shape.seq_k; ++s) {
    for (int i = 0; i < shape.value_dim; ++i) mean.v(0, 0, s, i) = static_cast<float>(s);
  }
  ones.run();
  mean.run();
  bool good = true;
  for (const float x : ones.output) good = good && agrees(x, 1.0, 1e-6 * shape.seq_k);
  for (const float x : mean.output) good = good && agrees(x, (shape.seq_k - 1) / 2.0, 1e-6 * shape.seq_k);
  INFO(ones.describe());
  CHECK(good);
}

}  // namespace

TEST_CASE("N12: for every length and width 1..70, v = 1 gives 1 and q = 0 gives the mean", "[attention][shapes]") {
  for (int n = 1; n <= 70; ++n) {
    check_closed_forms(shape_of(n));
    check_closed_forms(cube(n));
  }
}

TEST_CASE("every length and width 1..70 agrees with the reference", "[attention][shapes]") {
  Random random("every length and width");
  for (int n = 1; n <= 70; ++n) {
    Problem mixed(shape_of(n));
    mixed.fill_random(random);
    mixed.want_matrix(MatrixStage::weights);
    check_against_reference(mixed);
    if (n % 3 != 0) continue;
    Problem same(cube(n));
    same.fill_random(random);
    check_against_reference(same);
  }
}

TEST_CASE("sizes around query tiles, key tiles, panels and lanes agree with the reference", "[attention][shapes]") {
  Random random("tile boundaries");
  const int queries[] = {31, 32, 33, 63, 64, 65, 7, 8, 9, 127, 128, 129, 15, 16, 17, 255, 256, 257};
  const int keys[] = {127, 128, 129, 255, 256, 257, 511, 512, 513, 31, 32, 33, 63, 64, 65, 383, 385};
  const int widths[] = {1, 3, 65, 80, 96, 128, 129, 256, 64, 31, 33, 5, 7};
  // 18, 17 and 13 have no common factor: each step meets another triple.
  for (int n = 0; n < 36; ++n) {
    const int head_dim = widths[n % 13];
    const int value_dim = widths[(n * 5 + 4) % 13];
    Problem problem({.seq_q = queries[n % 18], .seq_k = keys[(n * 7) % 17], .head_dim = head_dim, .value_dim = value_dim});
    problem.fill_random(random);
    problem.options.scale = static_cast<float>(3.0 / std::sqrt(head_dim));  // far from uniform weights
    if (n % 3 == 0) problem.options.causal = true;
    if (n % 6 == 0) problem.options.query_offset = problem.shape.seq_k - problem.shape.seq_q;
    if (n % 4 == 0) problem.want_matrix(MatrixStage::weights);
    check_against_reference(problem);
  }
}

TEST_CASE("N17: zero lengths are legal", "[attention][shapes]") {
  SECTION("no batch row") {
    Problem p({.batch = 0, .heads = 2, .kv_heads = 2, .seq_q = 3, .seq_k = 4, .head_dim = 5, .value_dim = 6});
    p.run();
  }
  SECTION("no query") {
    Problem p({.batch = 2, .heads = 2, .kv_heads = 1, .seq_q = 0, .seq_k = 4, .head_dim = 5, .value_dim = 6});
    p.want_matrix(MatrixStage::weights);
    p.run();
  }
  SECTION("no key: output 0 and lse -inf, as for every query that sees no key") {
    for (const int queries : {1, 3, 40}) {
      Problem p({.batch = 2, .heads = 2, .kv_heads = 1, .seq_q = queries, .seq_k = 0, .head_dim = 5, .value_dim = 6});
      p.want_matrix(MatrixStage::weights);
      check_against_reference(p);
      CHECK(p.out(1, 1, queries - 1, 5) == 0.0F);
      CHECK(p.lse_at(1, 1, queries - 1) == -INFINITY);
    }
  }
  SECTION("no key, but a sink: output 0 and lse = sink") {
    Problem p({.seq_q = 2, .seq_k = 0, .head_dim = 1, .value_dim = 1});
    p.sinks = Buffer<float>(1);
    p.sinks[0] = 1.5F;
    check_against_reference(p);
    CHECK(p.lse_at(0, 0, 1) == 1.5F);
  }
  SECTION("head_dim 0: all scores are 0") {
    for (const int queries : {1, 9}) {
      Problem p({.seq_q = queries, .seq_k = 4, .head_dim = 0, .value_dim = 1});
      for (int s = 0; s < 4; ++s) p.v(0, 0, s, 0) = static_cast<float>(s);
      check_against_reference(p);
      CHECK(p.out(0, 0, 0, 0) == 1.5F);
    }
  }
  SECTION("value_dim 0: nothing to write but lse and weights") {
    Problem p({.seq_q = 3, .seq_k = 4, .head_dim = 2, .value_dim = 0});
    p.want_matrix(MatrixStage::weights);
    check_against_reference(p);
  }
}
