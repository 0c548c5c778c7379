// Calls with so many queries that the values of a key head are packed first (src/core/packed_values.h).

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <memory>
#include <vector>

#include "core/attention_plan.h"
#include "support/compare.h"

using namespace attn;
using namespace attn::test;

namespace {

/// 2 x 100 queries share a key head: packed.
constexpr Shape kShape{.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 100, .seq_k = 139, .head_dim = 5, .value_dim = 8};

bool is_packed(Problem& p) { return core::make_plan(p.params(), 1).packed_floats > 0; }

/// The first `queries` queries of a problem of one batch row and head, as a problem of their own.
Problem first_queries(Problem& p, int queries) {
  Problem some({.batch = 1,
                .heads = 1,
                .kv_heads = 1,
                .seq_q = queries,
                .seq_k = p.shape.seq_k,
                .head_dim = p.shape.head_dim,
                .value_dim = p.shape.value_dim});
  some.key = p.key;
  some.value = p.value;
  for (int t = 0; t < queries; ++t) {
    for (int i = 0; i < p.shape.head_dim; ++i) some.q(0, 0, t, i) = p.q(0, 0, t, i);
  }
  return some;
}

}  // namespace

TEST_CASE("packed values: every width, float32 and float16, whatever lies between the rows", "[attention][packed]") {
  Random random("packed values");
  for (const int value_dim : {1, 3, 4, 5, 7, 8, 9, 12, 13, 33}) {
    for (const Layout layout : {Layout::bhsd, Layout::bshd, Layout::gaps}) {
      for (const bool f16 : {false, true}) {
        Shape shape = kShape;
        shape.value_dim = value_dim;
        Problem p(shape, layout);
        p.fill_random(random);
        p.options.causal = random.chance(0.5);
        if (f16) p.use_f16();
        REQUIRE(is_packed(p));
        check_against_reference(p);
      }
    }
  }
}

TEST_CASE("packed values: keys of their own length in each batch row", "[attention][packed][mask]") {
  Random random("packed lengths");
  Problem p(kShape);
  p.fill_random(random);
  p.key_lengths = Buffer<std::int32_t>(2);
  REQUIRE(is_packed(p));
  for (const int length : {0, 1, 31, 32, 33, 138, 139}) {
    p.key_lengths[0] = length;
    p.key_lengths[1] = kShape.seq_k - length;
    check_against_reference(p);
  }
}

TEST_CASE("packing values changes no bit", "[attention][packed][laws]") {
  Random random("packed bits");
  for (const int value_dim : {1, 4, 6, 8, 13}) {
    Problem packed({.batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 224, .seq_k = 300, .head_dim = 7, .value_dim = value_dim});
    packed.fill_random(random);
    REQUIRE(is_packed(packed));
    packed.run();
    Problem in_place = first_queries(packed, 64);
    REQUIRE_FALSE(is_packed(in_place));
    in_place.run();
    bool same = true;
    for (int t = 0; t < 64; ++t) {
      for (int i = 0; i < value_dim; ++i) same = same && packed.out(0, 0, t, i) == in_place.out(0, 0, t, i);
    }
    CHECK(same);
  }
}

TEST_CASE("packed values are forgotten by the next call", "[attention][packed]") {
  Random random("packed again");
  Problem p({.batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 200, .seq_k = 40, .head_dim = 3, .value_dim = 5});
  p.fill_random(random);
  REQUIRE(is_packed(p));
  const std::size_t bytes = attention_scratch_bytes(p.params());
  // Zeros say "key head 0", and so does what the first call leaves.
  std::vector<float> scratch(bytes / sizeof(float) + 16, 0.0F);
  for (int call = 0; call < 2; ++call) {
    for (float& value : p.value) value += 1.0F;
    void* aligned = scratch.data();
    std::size_t space = scratch.size() * sizeof(float);
    aligned = std::align(16, bytes, aligned, space);
    p.output.erase();
    p.lse.erase();
    REQUIRE(attention_forward(p.params(), aligned, bytes) == Status::ok);
    compare_with_reference(p);
  }
}

TEST_CASE("packed values: few queries of many heads, with keys in chunks and without", "[attention][packed]") {
  Random random("packed groups");
  for (const int keys : {139, 2200}) {
    Problem p({.batch = 1, .heads = 8, .kv_heads = 1, .seq_q = 24, .seq_k = keys, .head_dim = 4, .value_dim = 6});
    p.fill_random(random);
    p.options.causal = true;
    p.options.query_offset = keys - 24;
    REQUIRE(is_packed(p));
    REQUIRE((core::make_plan(p.params(), 1).chunks > 1) == (keys == 2200));
    check_against_reference(p);
  }
}

TEST_CASE("packed values: only what some query sees by range is there", "[attention][packed][window]") {
  Random random("packed window");
  for (const int offset : {-130, -5, 0, 150, 290, 400}) {
    Problem p({.batch = 1, .heads = 2, .kv_heads = 1, .seq_q = 120, .seq_k = 300, .head_dim = 4, .value_dim = 6});
    p.fill_random(random);
    p.options.causal = true;
    p.options.window_left = 20;
    p.options.query_offset = offset;
    REQUIRE(is_packed(p));
    check_against_reference(p);
  }
}

TEST_CASE("packed float16 values: infinity and NaN show where they are seen", "[attention][packed][nan]") {
  Random random("packed NaN");
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const bool masked : {false, true}) {
      Problem p(kShape);
      p.fill_random(random);
      if (masked) {
        p.add_mask(1, 1, kShape.seq_q, kShape.seq_k);
        for (int t = 0; t < kShape.seq_q; ++t) p.mask_at(0, 0, t, 70) = t % 3 == 0 ? 1 : 0;
      } else {
        p.options.causal = true;
      }
      p.v(0, 1, 70, 2) = p.v(1, 0, 70, 7) = poison;
      p.use_f16();
      REQUIRE(is_packed(p));
      check_against_reference(p);
    }
  }
}

TEST_CASE("values are packed only where there are any and they are not too many", "[attention][packed]") {
  const auto packs = [](int keys, int value_dim) {
    AttentionParams p;
    p.batch_size = p.num_heads = p.num_kv_heads = p.head_dim = 1;
    p.seq_len_q = 200;
    p.seq_len_k = keys;
    p.value_dim = value_dim;
    return core::make_plan(p, 1).packed_stride > 0;
  };
  CHECK(packs(1 << 14, 64));
  CHECK_FALSE(packs((1 << 14) + 1, 64));
  CHECK_FALSE(packs(100, 0));
  CHECK_FALSE(packs(0, 64));
  CHECK_FALSE(packs(1 << 28, 0));
}
