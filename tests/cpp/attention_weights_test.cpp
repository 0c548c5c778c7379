// Matrices of every stage, chosen heads, their mean, and log-sum-exp.

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/compare.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

Problem with_everything(Random& random, int queries, int keys) {
  Problem p({.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = queries, .seq_k = keys, .head_dim = 5, .value_dim = 3});
  p.fill_random(random);
  p.options.softcap = 2.0F;
  p.options.causal = true;
  p.options.query_offset = keys / 2;
  p.add_mask(2, 1, queries, keys);
  for (std::uint8_t& m : p.mask) m = random.chance(0.8) ? 1 : 0;
  p.add_bias(1, 4, 1, keys);
  for (float& x : p.bias) x = random.chance(0.1) ? -INFINITY : random.real(-1, 1);
  p.alibi_slopes = Buffer<float>(4);
  for (float& x : p.alibi_slopes) x = random.real(0, 0.5);
  return p;
}

}  // namespace

TEST_CASE("N05: asking for weights changes no output, rows sum to 1 or 0, hidden entries are 0", "[attention][weights]") {
  Random random("weights on request");
  for (const int queries : {1, 5, 33}) {
    for (const int keys : {1, 40, 260}) {
      Problem plain = with_everything(random, queries, keys);
      for (int t = 0; t < queries; ++t) {
        if (t % 4 != 3) continue;
        for (int s = 0; s < keys; ++s) plain.mask_at(1, 0, t, s) = 0;
      }
      Problem asked = plain;
      asked.want_matrix(MatrixStage::weights);
      plain.run();
      check_against_reference(asked);  // hidden entries exactly 0 included
      CHECK(dense_output(plain) == dense_output(asked));
      CHECK(plain.lse == asked.lse);
      for (int b = 0; b < 2; ++b) {
        for (int h = 0; h < 4; ++h) {
          for (int t = 0; t < queries; ++t) {
            const double sum = asked.row_sum(b, h, t);
            CHECK((sum == 0 || std::fabs(sum - 1) <= kRowSum));
            CHECK((sum == 0) == (asked.lse_at(b, h, t) == -INFINITY));
          }
        }
      }
    }
  }
}

TEST_CASE("N05: chosen heads are those of all heads, in the order wanted; the mean is their mean", "[attention][weights]") {
  Random random("chosen heads");
  for (const int queries : {1, 5, 33}) {
    Problem all = with_everything(random, queries, 140);
    Problem chosen = all;
    Problem mean = all;
    Problem mean_of_two = all;
    all.want_matrix(MatrixStage::weights);
    chosen.want_matrix(MatrixStage::weights, {3, 0});
    mean.want_matrix(MatrixStage::weights, {}, true);
    mean_of_two.want_matrix(MatrixStage::weights, {3, 0}, true);
    for (Problem* p : {&all, &chosen, &mean, &mean_of_two}) check_against_reference(*p);
    bool same = true;
    bool near = true;
    for (int b = 0; b < 2; ++b) {
      for (int t = 0; t < queries; ++t) {
        for (int s = 0; s < 140; ++s) {
          same = same && chosen.matrix_at(b, 0, t, s) == all.matrix_at(b, 3, t, s) &&
                 chosen.matrix_at(b, 1, t, s) == all.matrix_at(b, 0, t, s);
          double sum = 0;
          for (int h = 0; h < 4; ++h) sum += double{all.matrix_at(b, h, t, s)};
          near = near && agrees(mean.matrix_at(b, 0, t, s), sum / 4, 4 * kEpsilon);
          const double two = (double{all.matrix_at(b, 0, t, s)} + double{all.matrix_at(b, 3, t, s)}) / 2;
          near = near && agrees(mean_of_two.matrix_at(b, 0, t, s), two, 4 * kEpsilon);
        }
      }
    }
    CHECK(same);
    CHECK(near);
    CHECK(dense_output(all) == dense_output(mean_of_two));
  }
}

TEST_CASE("every stage of the scores agrees with the reference", "[attention][weights]") {
  Random random("stages");
  for (const MatrixStage stage :
       {MatrixStage::scaled_scores, MatrixStage::softcapped_scores, MatrixStage::masked_scores, MatrixStage::weights}) {
    for (const int queries : {1, 5, 33}) {
      for (const bool cap : {true, false}) {
        Problem p = with_everything(random, queries, 150);
        if (!cap) p.options.softcap = 0.0F;
        p.want_matrix(stage);
        check_against_reference(p);
        Problem some = p;
        some.want_matrix(stage, {1, 2});
        check_against_reference(some);
      }
    }
  }
}

TEST_CASE("raw stages show the scores of hidden keys as well", "[attention][weights]") {
  for (const int queries : {1, 9, 33}) {
    Problem p({.seq_q = queries, .seq_k = 300});
    for (float& x : p.query) x = 1.0F;
    for (int s = 0; s < 300; ++s) p.k(0, 0, s, 0) = static_cast<float>(s);
    p.options.causal = true;
    p.want_matrix(MatrixStage::scaled_scores);
    check_against_reference(p);
    CHECK(p.matrix_at(0, 0, 0, 299) == 299.0F);
    p.want_matrix(MatrixStage::masked_scores);
    check_against_reference(p);
    CHECK(p.matrix_at(0, 0, 0, 299) == -INFINITY);
  }
}

TEST_CASE("output may be left out when only the matrix or lse is wanted", "[attention][weights]") {
  Random random("no output");
  for (const int queries : {1, 33}) {
    Problem p = with_everything(random, queries, 150);
    p.want_output = false;
    p.want_matrix(MatrixStage::weights, {2});
    check_against_reference(p);
    p.matrix = {};
    p.want_matrix(MatrixStage::none);
    check_against_reference(p);
  }
}

TEST_CASE("lse is the log of the sum of exponentials", "[attention][lse]") {
  for (const int queries : {1, 9}) {
    Problem p({.seq_q = queries, .seq_k = 3});
    for (float& x : p.query) x = 1.0F;
    p.set_key({std::log(1.0F), std::log(2.0F), std::log(5.0F)});
    p.run();
    CHECK(agrees(p.lse_at(0, 0, queries - 1), std::log(8.0), kClosedForm));
    p.set_key({1000, 1000, 1000});
    p.run();
    CHECK(agrees(p.lse_at(0, 0, queries - 1), 1000 + std::log(3.0), 1000 * kEpsilon));
  }
}
