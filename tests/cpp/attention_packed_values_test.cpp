// Calls with so many queries that the values of a key head are packed first (src/core/packed_values.h).

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <vector>

#include "support/compare.h"

using namespace attn;
using namespace attn::test;

namespace {

/// 2 x 100 queries share a key head: packed.
constexpr Shape kShape{.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 100, .seq_k = 139, .head_dim = 5, .value_dim = 8};

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
    packed.run();
    Problem in_place = first_queries(packed, 96);
    in_place.run();
    bool same = true;
    for (int t = 0; t < 96; ++t) {
      for (int i = 0; i < value_dim; ++i) same = same && packed.out(0, 0, t, i) == in_place.out(0, 0, t, i);
    }
    CHECK(same);
  }
}

TEST_CASE("packed values are forgotten by the next call", "[attention][packed]") {
  Random random("packed again");
  Problem p({.batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 200, .seq_k = 40, .head_dim = 3, .value_dim = 5});
  p.fill_random(random);
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
