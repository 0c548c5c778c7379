// All options in random combination against the reference: what the tests of single options do not think of.

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "support/compare.h"

using namespace attn;
using namespace attn::test;

namespace {

int random_length(Random& random) {
  if (random.chance(0.75)) return random.integer(1, 12);
  if (random.chance(0.1)) return 0;
  return random.pick({31, 32, 33, 40, 64, 65, 127, 128, 129, 140});
}

int random_width(Random& random) { return random.chance(0.8) ? random.integer(1, 18) : random.pick({31, 32, 33, 64, 65, 80}); }

void random_mask(Random& random, Problem& p) {
  const Shape& s = p.shape;
  const auto extent = [&](int full) { return random.chance(0.6) ? full : 1; };
  p.add_mask(extent(s.batch), extent(s.heads), extent(s.seq_q), extent(s.seq_k));
  const double density = random.pick({0.0, 0.1, 0.5, 0.9, 1.0});
  for (std::uint8_t& m : p.mask) m = random.chance(density) ? static_cast<std::uint8_t>(random.integer(1, 255)) : 0;
}

void random_bias(Random& random, Problem& p) {
  const Shape& s = p.shape;
  const auto extent = [&](int full) { return random.chance(0.6) ? full : 1; };
  p.add_bias(extent(s.batch), extent(s.heads), extent(s.seq_q), extent(s.seq_k));
  const double hidden = random.pick({0.0, 0.2, 0.9});
  const double size = random.pick({0.1, 3.0, 1000.0});
  for (float& x : p.bias) x = random.chance(hidden) ? -INFINITY : random.real(-size, size);
}

void random_positions(Random& random, Problem& p) {
  const Shape& s = p.shape;
  p.options.causal = random.chance(0.4);
  if (random.chance(0.3)) p.options.window_left = random.chance(0.1) ? std::numeric_limits<int>::max() : random.integer(0, 40);
  if (random.chance(0.3)) p.options.window_right = random.chance(0.1) ? std::numeric_limits<int>::max() : random.integer(0, 40);
  const auto offset = [&] { return random.chance(0.5) ? s.seq_k - s.seq_q : random.integer(-20, s.seq_k + 20); };
  p.options.query_offset = random.chance(0.5) ? 0 : offset();
  if (random.chance(0.3)) {
    p.query_offsets = Buffer<std::int32_t>(static_cast<std::size_t>(s.batch));
    for (std::int32_t& x : p.query_offsets) x = offset();
  }
  if (random.chance(0.3)) {
    p.key_lengths = Buffer<std::int32_t>(static_cast<std::size_t>(s.batch));
    for (std::int32_t& x : p.key_lengths) x = random.integer(0, s.seq_k);
  }
}

void random_matrix(Random& random, Problem& p) {
  const MatrixStage stage = random.pick(
      {MatrixStage::scaled_scores, MatrixStage::softcapped_scores, MatrixStage::masked_scores, MatrixStage::weights, MatrixStage::weights});
  const int last = p.shape.heads - 1;
  const bool mean = stage == MatrixStage::weights && random.chance(0.3);
  switch (random.integer(0, 2)) {
    case 0: p.want_matrix(stage, {}, mean); break;
    case 1: p.want_matrix(stage, {random.integer(0, last)}, mean); break;
    default: p.want_matrix(stage, {last, random.integer(0, last)}, mean); break;
  }
}

/// Keys behind the valid length are hidden from every query: NaN there must not matter.
void poison_hidden_keys(Problem& p) {
  if (p.key_lengths.empty()) return;
  if (p.options.matrix_stage == MatrixStage::scaled_scores || p.options.matrix_stage == MatrixStage::softcapped_scores) return;
  for (int b = 0; b < p.shape.batch; ++b) {
    for (int g = 0; g < p.shape.kv_heads; ++g) {
      for (int s = p.key_lengths[static_cast<std::size_t>(b)]; s < p.shape.seq_k; ++s) {
        p.k(b, g, s, 0) = NAN;
        p.v(b, g, s, p.shape.value_dim - 1) = NAN;
      }
    }
  }
}

Problem random_problem(Random& random) {
  const int kv_heads = random.integer(1, 2);
  Problem p({.batch = random.integer(1, 2),
             .heads = kv_heads * random.integer(1, 3),
             .kv_heads = kv_heads,
             .seq_q = random_length(random),
             .seq_k = random_length(random),
             .head_dim = random_width(random),
             .value_dim = random_width(random)},
            random.pick({Layout::bhsd, Layout::bshd, Layout::gaps}));
  p.fill_random(random, random.pick({0.1, 1.0, 4.0}));
  p.options.scale = random.chance(0.7) ? static_cast<float>(1 / std::sqrt(p.shape.head_dim)) : random.real(-2, 2);
  if (random.chance(0.3)) p.options.softcap = random.real(0.1, 20);
  random_positions(random, p);
  if (random.chance(0.4)) random_mask(random, p);
  if (random.chance(0.4)) random_bias(random, p);
  const auto per_head = static_cast<std::size_t>(p.shape.heads);
  if (random.chance(0.2)) {
    p.alibi_slopes = Buffer<float>(per_head);
    for (float& x : p.alibi_slopes) x = random.real(-0.1, 1);
  }
  if (random.chance(0.2)) {
    p.sinks = Buffer<float>(per_head);
    for (float& x : p.sinks) x = random.chance(0.1) ? -INFINITY : random.real(-5, 5);
  }
  p.want_lse = random.chance(0.7);
  if (random.chance(0.5)) random_matrix(random, p);
  if (!p.matrix.empty() || p.want_lse) p.want_output = random.chance(0.9);
  poison_hidden_keys(p);
  if (random.chance(0.3)) p.use_f16();
  return p;
}

}  // namespace

TEST_CASE("2000 random problems with options in any combination agree with the reference", "[attention][random]") {
  Random random("options in combination");
  for (int n = 0; n < 2000; ++n) {
    Problem p = random_problem(random);
    INFO("problem " << n);
    check_against_reference(p);
  }
}
