// Laws of attention that need no expected numbers, on random problems.

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <memory>
#include <vector>

#include "support/compare.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

/// Two sums in another order: a few epsilon of values up to 1, more where scores are larger.
constexpr double kSame = 4e-6;

Problem random_problem(Random& random, Layout layout = Layout::bhsd) {
  const int kv_heads = random.integer(1, 3);
  Problem p({.batch = random.integer(1, 3),
             .heads = kv_heads * random.integer(1, 3),
             .kv_heads = kv_heads,
             .seq_q = random.pick({1, 2, 5, 8, 31, 33, 40}),
             .seq_k = random.pick({1, 3, 9, 60, 127, 129, 200}),
             .head_dim = random.integer(1, 20),
             .value_dim = random.integer(1, 20)},
            layout);
  p.fill_random(random, 1.5);
  p.options.scale = static_cast<float>(1 / std::sqrt(p.shape.head_dim));
  return p;
}

template <typename Set>
void for_each_score(const Problem& p, Set set) {
  for (int b = 0; b < p.shape.batch; ++b) {
    for (int h = 0; h < p.shape.heads; ++h) {
      for (int t = 0; t < p.shape.seq_q; ++t) {
        for (int s = 0; s < p.shape.seq_k; ++s) set(b, h, t, s);
      }
    }
  }
}

/// Copies one row of key and value.
void copy_key(Problem& to, int to_s, Problem& from, int from_s) {
  for (int b = 0; b < to.shape.batch; ++b) {
    for (int g = 0; g < to.shape.kv_heads; ++g) {
      for (int i = 0; i < to.shape.head_dim; ++i) to.k(b, g, to_s, i) = from.k(b, g, from_s, i);
      for (int i = 0; i < to.shape.value_dim; ++i) to.v(b, g, to_s, i) = from.v(b, g, from_s, i);
    }
  }
}

}  // namespace

TEST_CASE("law: permuting keys, values and mask together changes nothing", "[attention][laws]") {
  Random random("permuted keys");
  for (int n = 0; n < 40; ++n) {
    Problem p = random_problem(random);
    p.add_mask(1, 1, p.shape.seq_q, p.shape.seq_k);
    for (std::uint8_t& m : p.mask) m = random.chance(0.8) ? 1 : 0;
    Problem permuted = p;
    const std::vector<int> order = random.permutation(p.shape.seq_k);
    for (int s = 0; s < p.shape.seq_k; ++s) {
      copy_key(permuted, s, p, order[static_cast<std::size_t>(s)]);
      for (int t = 0; t < p.shape.seq_q; ++t) permuted.mask_at(0, 0, t, s) = p.mask_at(0, 0, t, order[static_cast<std::size_t>(s)]);
    }
    p.run();
    permuted.run();
    check_same_output(p, permuted, kSame);
  }
}

TEST_CASE("law: a future key changes nothing under causal", "[attention][laws][causal]") {
  Random random("future keys");
  for (int n = 0; n < 40; ++n) {
    Problem p = random_problem(random);
    p.options.causal = true;
    p.options.query_offset = random.integer(-3, p.shape.seq_k);
    Problem changed = p;
    const int first_future = std::max(0, p.options.query_offset + p.shape.seq_q);
    for (int s = first_future; s < p.shape.seq_k; ++s) {
      for (int b = 0; b < p.shape.batch; ++b) {
        for (int g = 0; g < p.shape.kv_heads; ++g) {
          changed.k(b, g, s, 0) = random.real(-1e6, 1e6);
          changed.v(b, g, s, 0) = random.real(-1e6, 1e6);
        }
      }
    }
    p.run();
    changed.run();
    CHECK(same_bits(p, changed));
  }
}

TEST_CASE("law: causal and window equal their masks, bit for bit where both see the same tiles", "[attention][laws][window]") {
  Random random("window equals mask");
  for (int n = 0; n < 60; ++n) {
    Problem p = random_problem(random);
    p.options.causal = random.chance(0.5);
    p.options.query_offset = random.integer(-10, p.shape.seq_k + 10);
    p.options.window_left = random.chance(0.5) ? random.integer(0, 140) : -1;
    p.options.window_right = random.chance(0.5) ? random.integer(0, 140) : -1;
    Problem masked = p;
    masked.options.causal = false;
    masked.options.window_left = masked.options.window_right = -1;
    masked.add_mask(1, 1, p.shape.seq_q, p.shape.seq_k);
    for (int t = 0; t < p.shape.seq_q; ++t) {
      const int own = t + p.options.query_offset;
      for (int s = 0; s < p.shape.seq_k; ++s) {
        const bool sees = (!p.options.causal || s <= own) && (p.options.window_left < 0 || s >= own - p.options.window_left) &&
                          (p.options.window_right < 0 || s <= own + p.options.window_right);
        masked.mask_at(0, 0, t, s) = sees ? 1 : 0;
      }
    }
    p.run();
    masked.run();
    check_same_output(p, masked, kSame);
  }
}

TEST_CASE("law: a boolean mask equals a bias of 0 and -inf", "[attention][laws][mask][bias]") {
  Random random("mask equals bias");
  for (int n = 0; n < 40; ++n) {
    Problem masked = random_problem(random);
    Problem biased = masked;
    const Shape& s = masked.shape;
    masked.add_mask(s.batch, 1, s.seq_q, s.seq_k);
    biased.add_bias(s.batch, 1, s.seq_q, s.seq_k);
    for (std::size_t i = 0; i < masked.mask.size(); ++i) {
      masked.mask[i] = random.chance(0.6) ? 1 : 0;
      biased.bias[i] = masked.mask[i] != 0 ? 0.0F : -INFINITY;
    }
    masked.run();
    biased.run();
    check_same_output(masked, biased, kSame);
    CHECK(masked.lse.size() == biased.lse.size());
  }
}

TEST_CASE("law: ALiBi equals the bias it stands for", "[attention][laws][alibi]") {
  Random random("alibi equals bias");
  for (int n = 0; n < 30; ++n) {
    Problem p = random_problem(random);
    p.options.query_offset = random.integer(-5, 100);
    Problem biased = p;
    p.alibi_slopes = Buffer<float>(static_cast<std::size_t>(p.shape.heads));
    for (float& x : p.alibi_slopes) x = random.real(-0.01, 0.1);
    biased.add_bias(p.shape.batch, p.shape.heads, p.shape.seq_q, p.shape.seq_k);
    for_each_score(p, [&](int b, int h, int t, int s) {
      biased.bias_at(b, h, t, s) =
          -p.alibi_slopes[static_cast<std::size_t>(h)] * static_cast<float>(std::abs(t + p.options.query_offset - s));
    });
    p.run();
    biased.run();
    check_same_output(p, biased, kSame);
  }
}

TEST_CASE("law: a sink equals one more key with value 0", "[attention][laws][sinks]") {
  Random random("sink equals key");
  for (int n = 0; n < 30; ++n) {
    Problem p = random_problem(random);
    const Shape& s = p.shape;
    p.sinks = Buffer<float>(static_cast<std::size_t>(s.heads));
    for (float& x : p.sinks) x = random.real(-4, 6);
    Problem longer({.batch = s.batch,
                    .heads = s.heads,
                    .kv_heads = s.kv_heads,
                    .seq_q = s.seq_q,
                    .seq_k = s.seq_k + 1,
                    .head_dim = s.head_dim,
                    .value_dim = s.value_dim});
    longer.options.scale = p.options.scale;
    longer.query = p.query;
    for (int j = 0; j < s.seq_k; ++j) copy_key(longer, j, p, j);  // the last key stays 0, and its score is the bias
    longer.add_bias(1, s.heads, 1, s.seq_k + 1);
    for (int h = 0; h < s.heads; ++h) longer.bias_at(0, h, 0, s.seq_k) = p.sinks[static_cast<std::size_t>(h)];
    p.run();
    longer.run();
    check_same_output(p, longer, kSame);
    bool same_lse = true;
    for (std::size_t i = 0; i < p.lse.size(); ++i) same_lse = same_lse && agrees(p.lse[i], longer.lse[i], kSame);
    CHECK(same_lse);
  }
}

TEST_CASE("law: splitting the keys and merging by lse equals one call", "[attention][laws][lse]") {
  Random random("split and merge");
  for (int n = 0; n < 40; ++n) {
    Problem p = random_problem(random);
    p.add_mask(1, 1, 1, p.shape.seq_k);
    for (std::uint8_t& m : p.mask) m = random.chance(0.8) ? 1 : 0;
    Problem left = p;
    Problem right = p;
    const int cut = random.integer(0, p.shape.seq_k);
    for (int s = 0; s < p.shape.seq_k; ++s) (s < cut ? right : left).mask_at(0, 0, 0, s) = 0;
    p.run();
    left.run();
    right.run();
    bool good = true;
    for (int b = 0; b < p.shape.batch; ++b) {
      for (int h = 0; h < p.shape.heads; ++h) {
        for (int t = 0; t < p.shape.seq_q; ++t) {
          // output = (e^lse_l * left + e^lse_r * right) / e^lse
          const double lse = p.lse_at(b, h, t);
          const bool empty = std::isinf(lse);
          const double share_left = empty ? 0 : std::exp(double{left.lse_at(b, h, t)} - lse);
          const double share_right = empty ? 0 : std::exp(double{right.lse_at(b, h, t)} - lse);
          good = good && agrees(share_left + share_right, empty ? 0 : 1, kSame);
          for (int i = 0; i < p.shape.value_dim; ++i) {
            good = good && agrees(share_left * double{left.out(b, h, t, i)} + share_right * double{right.out(b, h, t, i)},
                                  p.out(b, h, t, i), kSame);
          }
        }
      }
    }
    INFO("cut " << cut << ", " << p.describe());
    CHECK(good);
  }
}

TEST_CASE("law: a bias that is constant along a row changes only lse", "[attention][laws][bias]") {
  Random random("softmax shift");
  for (int n = 0; n < 40; ++n) {
    Problem p = random_problem(random);
    Problem shifted = p;
    shifted.add_bias(1, 1, p.shape.seq_q, 1);
    for (float& x : shifted.bias) x = static_cast<float>(random.integer(-64, 64));
    p.run();
    shifted.run();
    check_same_output(p, shifted, 30 * kSame);  // scores near 64 are rounded to 2^-18
    bool good = true;
    for (int t = 0; t < p.shape.seq_q; ++t)
      good = good && agrees(shifted.lse_at(0, 0, t), double{p.lse_at(0, 0, t)} + double{shifted.bias_at(0, 0, t, 0)}, 30 * kSame);
    CHECK(good);
  }
}

TEST_CASE("law: a batch row does not know its neighbours", "[attention][laws]") {
  Random random("neighbours");
  for (int n = 0; n < 20; ++n) {
    Problem p = random_problem(random);
    const Shape& s = p.shape;
    p.run();
    for (int b = 0; b < s.batch; ++b) {
      Problem alone({.batch = 1,
                     .heads = s.heads,
                     .kv_heads = s.kv_heads,
                     .seq_q = s.seq_q,
                     .seq_k = s.seq_k,
                     .head_dim = s.head_dim,
                     .value_dim = s.value_dim});
      alone.options.scale = p.options.scale;
      for (std::size_t i = 0; i < alone.query.size(); ++i) alone.query[i] = p.query[static_cast<std::size_t>(b) * alone.query.size() + i];
      for (std::size_t i = 0; i < alone.key.size(); ++i) alone.key[i] = p.key[static_cast<std::size_t>(b) * alone.key.size() + i];
      for (std::size_t i = 0; i < alone.value.size(); ++i) alone.value[i] = p.value[static_cast<std::size_t>(b) * alone.value.size() + i];
      alone.run();
      bool same = true;
      for (std::size_t i = 0; i < alone.output.size(); ++i)
        same = same && alone.output[i] == p.output[static_cast<std::size_t>(b) * alone.output.size() + i];
      INFO(p.describe());
      CHECK(same);
    }
  }
}

TEST_CASE("law: a query row does not know its neighbours", "[attention][laws]") {
  // NaN in one query row leaves the others as they were, whichever rows share its tile.
  Random random("query neighbours");
  for (int n = 0; n < 30; ++n) {
    Problem p = random_problem(random);
    Problem poisoned = p;
    const int row = random.integer(0, p.shape.seq_q - 1);
    for (int i = 0; i < p.shape.head_dim; ++i) poisoned.q(0, 0, row, i) = NAN;
    p.run();
    poisoned.run();
    bool good = true;
    for (int b = 0; b < p.shape.batch; ++b) {
      for (int h = 0; h < p.shape.heads; ++h) {
        for (int t = 0; t < p.shape.seq_q; ++t) {
          for (int i = 0; i < p.shape.value_dim; ++i) {
            const bool own = b == 0 && h == 0 && t == row;
            good = good && (own ? std::isnan(poisoned.out(b, h, t, i)) : poisoned.out(b, h, t, i) == p.out(b, h, t, i));
          }
        }
      }
    }
    INFO("row " << row << ", " << p.describe());
    CHECK(good);
  }
}

TEST_CASE("N26: positions first equals heads first, and gaps change nothing", "[attention][laws][layout]") {
  Random random("layouts");
  for (int n = 0; n < 30; ++n) {
    Problem heads_first = random_problem(random);
    Problem positions_first(heads_first.shape, Layout::bshd);
    Problem gaps(heads_first.shape, Layout::gaps);
    for (Problem* other : {&positions_first, &gaps}) {
      for (int b = 0; b < heads_first.shape.batch; ++b) {
        for (int h = 0; h < heads_first.shape.heads; ++h) {
          for (int t = 0; t < heads_first.shape.seq_q; ++t) {
            for (int i = 0; i < heads_first.shape.head_dim; ++i) other->q(b, h, t, i) = heads_first.q(b, h, t, i);
          }
        }
      }
      for (int s = 0; s < heads_first.shape.seq_k; ++s) copy_key(*other, s, heads_first, s);
      other->options.scale = heads_first.options.scale;
    }
    heads_first.run();
    positions_first.run();
    gaps.run();
    CHECK(same_bits(heads_first, positions_first));
    CHECK(same_bits(heads_first, gaps));
  }
  Problem small({.heads = 2, .kv_heads = 2, .seq_q = 2, .seq_k = 2}, Layout::bshd);
  small.set_value({1, 3, 2, 4});
  small.options.window_left = small.options.window_right = 0;
  small.run();
  CHECK(small.output[0] == 1.0F);
  CHECK(small.output[1] == 3.0F);
  CHECK(small.output[2] == 2.0F);
  CHECK(small.output[3] == 4.0F);
}

TEST_CASE("the same array may be query, key and value", "[attention][layout]") {
  Random random("aliases");
  Problem p({.batch = 2, .heads = 3, .kv_heads = 3, .seq_q = 37, .seq_k = 37, .head_dim = 6, .value_dim = 6});
  p.fill_random(random);
  p.key = p.query;
  p.value = p.query;
  p.run();
  Problem alias = p;
  alias.output.erase();
  AttentionParams params = alias.params();
  params.key = params.value = params.query;
  std::vector<float> scratch(attention_scratch_bytes(params) / 4 + 8);
  void* aligned = scratch.data();
  std::size_t space = scratch.size() * 4;
  aligned = std::align(16, attention_scratch_bytes(params), aligned, space);
  REQUIRE(attention_forward(params, aligned, attention_scratch_bytes(params)) == Status::ok);
  CHECK(same_bits(p, alias));
}

TEST_CASE("N20: the same call gives the same bits", "[attention][laws]") {
  Random random("one answer");
  for (int n = 0; n < 10; ++n) {
    Problem p = random_problem(random);
    p.want_matrix(MatrixStage::weights);
    Problem again = p;
    p.run();
    again.run();
    CHECK(same_bits(p, again));
  }
}

TEST_CASE("N29: equal scores give equal weights, bit for bit, and rows sum to 1", "[attention][laws][weights]") {
  Random random("equal scores");
  for (const int keys : {1, 2, 3, 5, 7, 33, 127, 128, 129, 1000, 4096}) {
    for (const int queries : {1, 2, 9, 33}) {
      Problem p({.seq_q = queries, .seq_k = keys, .head_dim = 7, .value_dim = 1});
      p.fill_random(random);
      for (int s = 1; s < keys; ++s) {
        for (int i = 0; i < 7; ++i) p.k(0, 0, s, i) = p.k(0, 0, 0, i);
      }
      p.want_matrix(MatrixStage::weights);
      p.run();
      bool equal = true;
      bool sums = true;
      for (int t = 0; t < queries; ++t) {
        for (int s = 0; s < keys; ++s) equal = equal && p.matrix_at(0, 0, t, s) == p.matrix_at(0, 0, t, 0);
        sums = sums && std::fabs(p.row_sum(0, 0, t) - 1) <= kRowSum;
      }
      INFO(p.describe());
      CHECK(equal);
      CHECK(sums);

      p.fill_random(random, 3.0);
      p.run();
      sums = true;
      for (int t = 0; t < queries; ++t) sums = sums && std::fabs(p.row_sum(0, 0, t) - 1) <= kRowSum;
      CHECK(sums);
    }
  }
}

TEST_CASE("N29: many tiny weights beside a large one do not get lost", "[attention][weights][accuracy]") {
  // Added one by one to a sum that holds 1 already, each would be rounded the same way.
  for (const int keys : {1001, 4096}) {
    for (const int queries : {1, 3, 33}) {
      for (const float low : {-13.1F, -13.9F, -15.0F, -15.54F, -16.5F}) {
        Problem p({.seq_q = queries, .seq_k = keys});
        for (float& x : p.query) x = 1.0F;
        for (int s = 0; s < keys; ++s) {
          p.k(0, 0, s, 0) = s == 0 ? 0.0F : low;
          p.v(0, 0, s, 0) = 1.0F;
        }
        p.want_matrix(MatrixStage::weights);
        p.run();
        INFO("keys " << keys << ", queries " << queries << ", low " << low);
        CHECK(std::fabs(p.row_sum(0, 0, queries - 1) - 1) <= kRowSum);
        CHECK(agrees(p.out(0, 0, queries - 1, 0), 1.0, tiled_sum_error(keys)));
      }
    }
  }
}
