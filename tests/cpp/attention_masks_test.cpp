// Boolean mask, additive bias, valid lengths: what they mean alone, how they broadcast and how they compose.

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/compare.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

TEST_CASE("N01: a row without keys gives 0 in output and weights, and lse -inf", "[attention][mask]") {
  Random random("row without keys");
  Problem p({.seq_q = 2, .seq_k = 2, .head_dim = 3, .value_dim = 1});
  p.fill_random(random);
  p.set_value({4, 8});
  Problem unmasked = p;
  p.add_mask(1, 1, 2, 2);
  p.mask_at(0, 0, 0, 0) = p.mask_at(0, 0, 0, 1) = 0;
  for (Problem* each : {&p, &unmasked}) {
    each->want_matrix(MatrixStage::weights);
    check_against_reference(*each);
  }
  CHECK(p.out(0, 0, 0, 0) == 0.0F);
  CHECK(p.lse_at(0, 0, 0) == -INFINITY);
  CHECK(p.matrix_at(0, 0, 0, 0) == 0.0F);
  CHECK(p.matrix_at(0, 0, 0, 1) == 0.0F);
  CHECK(agrees(p.out(0, 0, 1, 0), unmasked.out(0, 0, 1, 0), kClosedForm));
}

TEST_CASE("N02: -1e9 is a number, -inf hides", "[attention][bias]") {
  for (const int queries : {1, 9}) {
    Problem p({.seq_q = queries, .seq_k = 3});
    p.set_value({1, 2, 6});
    p.want_matrix(MatrixStage::weights);
    p.add_bias(1, 1, 1, 3, -1e9F);
    p.run();
    CHECK(agrees(p.out(0, 0, 0, 0), 3.0, 3 * kClosedForm));
    CHECK(agrees(p.matrix_at(0, 0, queries - 1, 2), 1.0 / 3.0, kClosedForm));

    for (float& x : p.bias) x = -INFINITY;
    p.run();
    CHECK(p.out(0, 0, 0, 0) == 0.0F);
    CHECK(p.matrix_at(0, 0, queries - 1, 2) == 0.0F);

    // The smallest finite float as a bias, as many exporters write it. Scores of 0 add nothing to it.
    for (float& x : p.bias) x = -3.40282347e38F;
    p.run();
    CHECK(agrees(p.out(0, 0, 0, 0), 3.0, 3 * kClosedForm));
    p.bias[0] = 0.0F;
    p.run();
    CHECK(p.out(0, 0, 0, 0) == 1.0F);
  }
}

TEST_CASE("N06: mask 1 = attend, and any nonzero byte is 1", "[attention][mask]") {
  Problem p({.seq_q = 1, .seq_k = 2});
  p.set_value({5, 7});
  p.add_mask(1, 1, 1, 2);
  for (const int yes : {1, 2, 128, 255}) {
    p.mask[0] = static_cast<std::uint8_t>(yes);
    p.mask[1] = 0;
    p.run();
    CHECK(p.output[0] == 5.0F);
  }
}

TEST_CASE("N07: a bias is added", "[attention][bias]") {
  Problem p({.seq_q = 1, .seq_k = 2});
  p.want_matrix(MatrixStage::weights);
  p.set_value({0, 4});
  p.add_bias(1, 1, 1, 2);
  p.bias[1] = std::log(3.0F);
  p.run();
  CHECK(agrees(p.output[0], 3.0, 4 * kClosedForm));
  p.bias[1] = 1.0F;
  p.run();
  CHECK(agrees(p.matrix[0], 0.2689414, kClosedForm));
  CHECK(agrees(p.matrix[1], 0.7310586, kClosedForm));
}

TEST_CASE("mask and bias broadcast along every axis", "[attention][mask][bias]") {
  Random random("broadcast");
  // Each bit says whether that axis is full or 1.
  for (int bits = 0; bits < 16; ++bits) {
    const int full[4] = {2, 4, 9, 133};
    const auto extent = [&](int axis, int which) { return ((which >> axis) & 1) != 0 ? full[axis] : 1; };
    Problem p({.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 9, .seq_k = 133, .head_dim = 4, .value_dim = 3});
    p.fill_random(random);
    p.add_mask(extent(0, bits), extent(1, bits), extent(2, bits), extent(3, bits));
    for (std::uint8_t& m : p.mask) m = random.chance(0.7) ? 1 : 0;
    const int other = 15 - bits;
    p.add_bias(extent(0, other), extent(1, other), extent(2, other), extent(3, other));
    for (float& x : p.bias) x = random.chance(0.1) ? -INFINITY : random.real(-3, 3);
    p.want_matrix(MatrixStage::masked_scores);
    check_against_reference(p);
  }
}

TEST_CASE("a mask may be read through any strides", "[attention][mask]") {
  // Transposed in memory: [key, query] with a gap after each key.
  Random random("strided mask");
  Problem p({.seq_q = 6, .seq_k = 40, .head_dim = 2, .value_dim = 2});
  p.fill_random(random);
  p.mask = Buffer<std::uint8_t>(40 * 8);
  for (std::uint8_t& m : p.mask) m = random.chance(0.5) ? 1 : 0;
  p.options.mask_strides = {0, 0, 1, 8};
  p.bias = Buffer<float>(40 * 8);
  for (float& x : p.bias) x = random.real(-1, 1);
  p.options.bias_strides = {0, 0, 1, 8};
  check_against_reference(p);
}

TEST_CASE("valid lengths hide keys in each batch row, 0 and all included", "[attention][lengths]") {
  Random random("lengths");
  for (const int queries : {1, 5, 34}) {
    Problem p({.batch = 6, .heads = 2, .kv_heads = 1, .seq_q = queries, .seq_k = 260, .head_dim = 3, .value_dim = 2});
    p.fill_random(random);
    p.key_lengths = Buffer<std::int32_t>(6);
    const int lengths[] = {0, 1, 128, 129, 259, 260};
    for (std::size_t b = 0; b < 6; ++b) p.key_lengths[b] = lengths[b];
    p.want_matrix(MatrixStage::weights);
    check_against_reference(p);
    CHECK(p.out(0, 0, 0, 0) == 0.0F);
    CHECK(p.matrix_at(4, 1, 0, 259) == 0.0F);
  }
}

TEST_CASE("mask, bias, lengths, causal and window intersect", "[attention][mask][bias][lengths][causal]") {
  Random random("composition");
  for (int bits = 0; bits < 32; ++bits) {
    Problem p({.batch = 2, .heads = 2, .kv_heads = 2, .seq_q = 10, .seq_k = 14, .head_dim = 3, .value_dim = 2});
    p.fill_random(random);
    if ((bits & 1) != 0) {
      p.add_mask(2, 2, 10, 14);
      for (std::uint8_t& m : p.mask) m = random.chance(0.6) ? 1 : 0;
    }
    if ((bits & 2) != 0) {
      p.add_bias(2, 2, 10, 14);
      for (float& x : p.bias) x = random.chance(0.3) ? -INFINITY : random.real(-2, 2);
    }
    if ((bits & 4) != 0) {
      p.key_lengths = Buffer<std::int32_t>(2);
      p.key_lengths[0] = 5;
      p.key_lengths[1] = 13;
    }
    p.options.causal = (bits & 8) != 0;
    if ((bits & 16) != 0) p.options.window_left = 3;
    p.options.query_offset = 2;
    p.want_matrix(MatrixStage::weights);
    check_against_reference(p);
  }
}

TEST_CASE("N16: a padded batch row equals its own unpadded call", "[attention][lengths][mask]") {
  Random random("padded batch");
  Problem batch({.batch = 2, .heads = 2, .kv_heads = 1, .seq_q = 5, .seq_k = 5, .head_dim = 4, .value_dim = 3});
  batch.fill_random(random);
  Problem masked = batch;
  batch.key_lengths = Buffer<std::int32_t>(2);
  batch.key_lengths[0] = 3;
  batch.key_lengths[1] = 5;
  masked.add_mask(2, 1, 1, 5);
  masked.mask_at(0, 0, 0, 3) = masked.mask_at(0, 0, 0, 4) = 0;
  batch.run();
  masked.run();
  for (int b = 0; b < 2; ++b) {
    const int keys = b == 0 ? 3 : 5;
    Problem alone({.batch = 1, .heads = 2, .kv_heads = 1, .seq_q = 5, .seq_k = keys, .head_dim = 4, .value_dim = 3});
    for (int h = 0; h < 2; ++h) {
      for (int t = 0; t < 5; ++t) {
        for (int i = 0; i < 4; ++i) alone.q(0, h, t, i) = batch.q(b, h, t, i);
      }
    }
    for (int s = 0; s < keys; ++s) {
      for (int i = 0; i < 4; ++i) alone.k(0, 0, s, i) = batch.k(b, 0, s, i);
      for (int i = 0; i < 3; ++i) alone.v(0, 0, s, i) = batch.v(b, 0, s, i);
    }
    alone.run();
    for (int h = 0; h < 2; ++h) {
      for (int t = 0; t < 5; ++t) {
        for (int i = 0; i < 3; ++i) {
          CHECK(agrees(batch.out(b, h, t, i), alone.out(0, h, t, i), 1e-6));
          CHECK(agrees(masked.out(b, h, t, i), alone.out(0, h, t, i), 1e-6));
        }
      }
    }
  }
}
