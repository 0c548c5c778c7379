// NaN and infinity: never through a hidden key, always through a visible one.

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "support/compare.h"

using namespace attn;
using namespace attn::test;

namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

/// Positions on both sides of lanes, panels and key tiles.
const int kPositions[] = {0, 1, 3, 4, 7, 8, 31, 32, 127, 128, 129, 255, 256, 300};
constexpr int kKeys = 301;

/// How one key is hidden from every query.
enum class HiddenBy { mask, bias, length, causal, window };

Problem hide(HiddenBy by, int position, int queries, Random& random) {
  Problem p({.batch = 1, .heads = 2, .kv_heads = 1, .seq_q = queries, .seq_k = kKeys, .head_dim = 5, .value_dim = 6});
  p.fill_random(random);
  switch (by) {
    case HiddenBy::mask:
      p.add_mask(1, 1, 1, kKeys);
      p.mask_at(0, 0, 0, position) = 0;
      break;
    case HiddenBy::bias:
      p.add_bias(1, 1, 1, kKeys);
      p.bias_at(0, 0, 0, position) = -kInf;
      break;
    case HiddenBy::length:
      p.key_lengths = Buffer<std::int32_t>(1);
      p.key_lengths[0] = position;
      break;
    case HiddenBy::causal:
      p.options.causal = true;
      p.options.query_offset = position - queries;  // the last query sits right before it
      break;
    case HiddenBy::window:
      p.options.window_left = 3;
      p.options.query_offset = position + 4;
      break;
  }
  return p;
}

}  // namespace

TEST_CASE("N18: NaN behind a mask is not seen, NaN in the open is", "[attention][nan]") {
  Problem p({.seq_q = 1, .seq_k = 2});
  p.set_value({5, kNan});
  p.run();
  CHECK(std::isnan(p.output[0]));
  p.add_mask(1, 1, 1, 2);
  p.mask[0] = 1;
  p.mask[1] = 0;
  p.run();
  CHECK(p.output[0] == 5.0F);

  Problem two({.seq_q = 1, .seq_k = 2, .value_dim = 2});
  two.set_value({1, kNan, 1, 2});
  two.run();
  CHECK(two.output[0] == 1.0F);
  CHECK(std::isnan(two.output[1]));
}

TEST_CASE("hidden keys and values add nothing, whatever they hold", "[attention][nan][mask]") {
  Random random("hidden NaN");
  for (const HiddenBy by : {HiddenBy::mask, HiddenBy::bias, HiddenBy::length, HiddenBy::causal, HiddenBy::window}) {
    for (const int position : kPositions) {
      for (const int queries : {1, 9, 33, 100}) {  // 100: values are packed
        Problem clean = hide(by, position, queries, random);
        clean.want_matrix(MatrixStage::weights);
        clean.run();
        const float poison = random.pick({kNan, kInf, -kInf, 3e38F});
        Problem dirty = clean;
        for (int i = 0; i < 5; ++i) dirty.k(0, 0, position, i) = poison;
        for (int i = 0; i < 6; ++i) dirty.v(0, 0, position, i) = poison;
        dirty.run();
        INFO("hidden by " << static_cast<int>(by) << ", position " << position << ", poison " << poison << ", " << dirty.describe());
        // Sums may be formed in another way beside such values; scores may not.
        check_same_output(clean, dirty, 2e-6);
        CHECK(clean.lse == dirty.lse);
        CHECK(clean.matrix == dirty.matrix);
      }
    }
  }
}

TEST_CASE("bias and mask of a hidden key add nothing either", "[attention][nan][bias]") {
  Random random("hidden bias");
  for (const int queries : {1, 9, 33}) {
    Problem clean = hide(HiddenBy::mask, 128, queries, random);
    clean.add_bias(1, 1, queries, kKeys);
    Problem dirty = clean;
    for (int t = 0; t < queries; ++t) dirty.bias_at(0, 0, t, 128) = random.pick({kNan, kInf, 3e38F});
    clean.run();
    dirty.run();
    CHECK(same_bits(clean, dirty));
  }
}

TEST_CASE("a whole hidden tile of NaN, and rows that see nothing beside rows that do", "[attention][nan][mask]") {
  Random random("hidden tile");
  for (const int queries : {1, 4, 40}) {
    Problem p({.batch = 2, .heads = 1, .kv_heads = 1, .seq_q = queries, .seq_k = 400, .head_dim = 3, .value_dim = 3});
    p.fill_random(random);
    p.add_mask(2, 1, queries, 400);
    for (int b = 0; b < 2; ++b) {
      for (int t = 0; t < queries; ++t) {
        for (int s = 0; s < 400; ++s) {
          const bool tile_hidden = s >= 120 && s < 260;
          p.mask_at(b, 0, t, s) = (tile_hidden || t % 3 == 2 || random.chance(0.3)) ? 0 : 1;
        }
      }
      for (int s = 120; s < 260; ++s) {
        for (int i = 0; i < 3; ++i) p.k(b, 0, s, i) = p.v(b, 0, s, i) = kNan;
      }
    }
    p.want_matrix(MatrixStage::weights);
    check_against_reference(p);
  }
}

TEST_CASE("hidden for some rows only: NaN shows in exactly the rows that see it", "[attention][nan][causal]") {
  Random random("partly hidden NaN");
  for (const int position : kPositions) {
    for (const bool in_key : {true, false}) {
      for (const int queries : {3, 40, 200}) {  // 200: values are packed
        Problem p({.batch = 1, .heads = 2, .kv_heads = 2, .seq_q = queries, .seq_k = kKeys, .head_dim = 5, .value_dim = 6});
        p.fill_random(random);
        p.options.causal = true;
        p.options.query_offset = position - queries / 2;
        p.want_matrix(MatrixStage::weights);
        if (in_key) {
          p.k(0, 1, position, 2) = kNan;
        } else {
          p.v(0, 1, position, 2) = kNan;
        }
        check_against_reference(p);  // the reference says where NaN belongs
        for (int t = 0; t < queries; ++t) {
          const bool sees = t + p.options.query_offset >= position;
          CHECK(std::isnan(p.out(0, 1, t, 2)) == sees);
          CHECK(std::isnan(p.out(0, 1, t, 3)) == (sees && in_key));
          CHECK_FALSE(std::isnan(p.out(0, 0, t, 2)));
        }
      }
    }
  }
}

TEST_CASE("NaN in a visible key, query, bias, sink or slope makes its rows NaN", "[attention][nan]") {
  Random random("visible NaN");
  for (const int position : kPositions) {
    for (const int queries : {1, 9, 33}) {
      Problem clean({.batch = 1, .heads = 2, .kv_heads = 1, .seq_q = queries, .seq_k = kKeys, .head_dim = 5, .value_dim = 2});
      clean.fill_random(random);
      clean.want_matrix(MatrixStage::weights);
      const int row = queries / 2;

      Problem key = clean;
      key.k(0, 0, position, 4) = kNan;
      check_against_reference(key);
      CHECK(std::isnan(key.out(0, 1, row, 0)));
      CHECK(std::isnan(key.lse_at(0, 1, row)));

      Problem query = clean;
      query.q(0, 1, row, 0) = kNan;
      check_against_reference(query);

      Problem bias = clean;
      bias.add_bias(1, 1, queries, kKeys);
      bias.bias_at(0, 0, row, position) = kNan;
      check_against_reference(bias);

      Problem sink = clean;
      sink.sinks = Buffer<float>(2);
      sink.sinks[0] = 0.0F;
      sink.sinks[1] = kNan;
      check_against_reference(sink);

      Problem slope = clean;
      slope.alibi_slopes = Buffer<float>(2);
      slope.alibi_slopes[0] = 0.1F;
      slope.alibi_slopes[1] = kNan;
      check_against_reference(slope);

      Problem capped = key;
      capped.options.softcap = 5.0F;
      check_against_reference(capped);
    }
  }
}

TEST_CASE("infinite visible scores follow IEEE", "[attention][nan]") {
  for (const int queries : {1, 9, 33}) {
    for (const int position : kPositions) {
      Problem p({.seq_q = queries, .seq_k = kKeys});
      for (float& x : p.query) x = 1.0F;
      for (int s = 0; s < kKeys; ++s) p.v(0, 0, s, 0) = 1.0F;
      p.want_matrix(MatrixStage::weights);
      // +inf: inf - inf is NaN, and with it the sum of the row
      p.k(0, 0, position, 0) = kInf;
      check_against_reference(p);
      CHECK(std::isnan(p.out(0, 0, queries - 1, 0)));
      // -inf: an ordinary weight of 0
      p.k(0, 0, position, 0) = -kInf;
      check_against_reference(p);
      CHECK(p.matrix_at(0, 0, queries - 1, position) == 0.0F);
      // softcap makes both finite
      p.options.softcap = 2.0F;
      check_against_reference(p);
      p.k(0, 0, position, 0) = kInf;
      check_against_reference(p);
    }
  }
}

TEST_CASE("a row whose visible scores are all -inf is NaN, not an empty row", "[attention][nan]") {
  for (const int queries : {1, 9, 33}) {
    for (const int keys : {1, 5, 200}) {
      Problem p({.seq_q = queries, .seq_k = keys});
      for (float& x : p.query) x = 1.0F;
      for (float& x : p.key) x = -kInf;
      for (float& x : p.value) x = 1.0F;
      p.want_matrix(MatrixStage::weights);
      check_against_reference(p);
      CHECK(std::isnan(p.out(0, 0, 0, 0)));
      // One key with a finite score settles it.
      p.k(0, 0, keys - 1, 0) = 0.0F;
      check_against_reference(p);
      CHECK(p.out(0, 0, 0, 0) == 1.0F);
      // So does a sink.
      p.k(0, 0, keys - 1, 0) = -kInf;
      p.sinks = Buffer<float>(1);
      p.sinks[0] = 0.0F;
      check_against_reference(p);
      CHECK(p.out(0, 0, 0, 0) == 0.0F);
    }
  }
}

TEST_CASE("an infinite value shows in its own component", "[attention][nan]") {
  Random random("infinite value");
  for (const int queries : {1, 9, 33}) {
    for (const int position : kPositions) {
      Problem p({.seq_q = queries, .seq_k = kKeys, .head_dim = 2, .value_dim = 9});
      p.fill_random(random);
      p.v(0, 0, position, 7) = -kInf;
      check_against_reference(p);
      CHECK(p.out(0, 0, queries - 1, 7) == -kInf);
    }
  }
}
