// Grouped heads: query head h reads key/value head floor(h / group).

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/compare.h"

using namespace attn;
using namespace attn::test;

TEST_CASE("N09: grouped heads repeat, they do not tile", "[attention][heads]") {
  for (const int queries : {1, 2, 40}) {
    Problem grouped({.heads = 4, .kv_heads = 2, .seq_q = queries, .seq_k = 1});
    grouped.set_value({5, 9});
    grouped.run();
    for (int t = 0; t < queries; ++t) {
      CHECK(grouped.out(0, 0, t, 0) == 5.0F);
      CHECK(grouped.out(0, 1, t, 0) == 5.0F);
      CHECK(grouped.out(0, 2, t, 0) == 9.0F);
      CHECK(grouped.out(0, 3, t, 0) == 9.0F);
    }
    Problem single({.heads = 4, .kv_heads = 1, .seq_q = queries, .seq_k = 1});
    single.set_value({7});
    single.run();
    for (int h = 0; h < 4; ++h) CHECK(single.out(0, h, queries - 1, 0) == 7.0F);
  }
}

TEST_CASE("law: grouped heads equal repeated heads", "[attention][heads][laws]") {
  Random random("grouped equals repeated");
  for (const int group : {1, 2, 3, 5, 8}) {
    for (const int queries : {1, 3, 33}) {
      const int kv_heads = 2;
      Problem grouped(
          {.batch = 2, .heads = kv_heads * group, .kv_heads = kv_heads, .seq_q = queries, .seq_k = 140, .head_dim = 6, .value_dim = 5});
      grouped.fill_random(random);
      Problem repeated({.batch = 2,
                        .heads = kv_heads * group,
                        .kv_heads = kv_heads * group,
                        .seq_q = queries,
                        .seq_k = 140,
                        .head_dim = 6,
                        .value_dim = 5});
      repeated.query = grouped.query;
      for (int b = 0; b < 2; ++b) {
        for (int h = 0; h < kv_heads * group; ++h) {
          for (int s = 0; s < 140; ++s) {
            for (int i = 0; i < 6; ++i) repeated.k(b, h, s, i) = grouped.k(b, h / group, s, i);
            for (int i = 0; i < 5; ++i) repeated.v(b, h, s, i) = grouped.v(b, h / group, s, i);
          }
        }
      }
      for (Problem* p : {&grouped, &repeated}) {
        p->options.causal = true;
        p->options.query_offset = 100;
        p->sinks = Buffer<float>(static_cast<std::size_t>(kv_heads * group));
        for (std::size_t h = 0; h < p->sinks.size(); ++h) p->sinks[h] = static_cast<float>(h) - 3.0F;
        p->want_matrix(MatrixStage::weights);
        check_against_reference(*p);
      }
      check_same_output(grouped, repeated, 2e-6);
    }
  }
}

TEST_CASE("options that differ from head to head within a group", "[attention][heads][mask][bias]") {
  Random random("per-head options");
  for (const int queries : {1, 2, 3, 8, 33}) {
    Problem p({.batch = 2, .heads = 6, .kv_heads = 2, .seq_q = queries, .seq_k = 150, .head_dim = 4, .value_dim = 4});
    p.fill_random(random);
    p.add_mask(2, 6, queries, 150);
    for (std::uint8_t& m : p.mask) m = random.chance(0.5) ? 1 : 0;
    // One whole head sees nothing.
    for (int t = 0; t < queries; ++t) {
      for (int s = 0; s < 150; ++s) p.mask_at(1, 4, t, s) = 0;
    }
    p.add_bias(1, 6, 1, 150);
    for (float& x : p.bias) x = random.real(-5, 5);
    p.alibi_slopes = Buffer<float>(6);
    for (float& x : p.alibi_slopes) x = random.real(0, 0.1);
    p.want_matrix(MatrixStage::weights, {5, 1});
    check_against_reference(p);
  }
}
