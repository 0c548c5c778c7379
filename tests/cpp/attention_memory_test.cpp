// Memory: scratch of O(seq), any alignment of inputs and outputs. That nothing is written beside results, and that inputs stay as they
// were, is checked by every call of Problem::run.

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <vector>

#include "support/compare.h"
#include "support/scratch.h"

using namespace attn;
using namespace attn::test;

namespace {

/// A copy of a buffer that starts `bytes` behind a multiple of 64.
struct Aligned {
  Aligned(const Buffer<float>& from, std::size_t bytes) : memory(from.size() + 64) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory.data());
    data = reinterpret_cast<float*>((start + 63) / 64 * 64 + bytes);
    if (!from.empty()) std::memcpy(data, from.data(), from.size() * sizeof(float));
  }
  std::vector<float> memory;
  float* data;
};

}  // namespace

TEST_CASE("N14: results do not depend on how the arrays are aligned", "[attention][memory]") {
  Random random("alignment");
  for (const int queries : {1, 5, 40}) {
    Problem p({.batch = 1, .heads = 2, .kv_heads = 1, .seq_q = queries, .seq_k = 150, .head_dim = 16, .value_dim = 12});
    p.fill_random(random);
    p.add_bias(1, 1, queries, 150);
    for (float& x : p.bias) x = random.real(-1, 1);
    p.want_matrix(MatrixStage::weights);
    p.run();
    for (const std::size_t bytes : {0U, 4U, 8U, 12U, 16U, 20U, 32U}) {
      const Aligned query(p.query, bytes);
      const Aligned key(p.key, (bytes + 4) % 64);
      const Aligned value(p.value, (bytes + 8) % 64);
      const Aligned bias(p.bias, (bytes + 12) % 64);
      Problem moved = p;
      moved.output.erase();
      moved.lse.erase();
      moved.matrix.erase();
      AttentionParams params = moved.params();
      params.query = query.data;
      params.key = key.data;
      params.value = value.data;
      params.bias = bias.data;
      Scratch scratch(attention_scratch_bytes(params));
      REQUIRE(attention_forward(params, scratch.data(), scratch.bytes()) == Status::ok);
      CHECK(same_bits(p, moved));
    }
  }
}

TEST_CASE("M06: scratch grows with the lengths, not with their product", "[attention][memory]") {
  const auto bytes = [](int queries, int keys, bool weights) {
    // Sizes only: nothing is read, so one element stands for all memory.
    static float element = 0;
    AttentionParams p;
    p.query = &element;
    p.key = p.value = &element;
    p.output = &element;
    p.batch_size = p.num_heads = p.num_kv_heads = 1;
    p.seq_len_q = queries;
    p.seq_len_k = keys;
    p.head_dim = p.value_dim = 64;
    if (weights) {
      p.matrix = &element;
      p.matrix_stage = MatrixStage::weights;
    }
    return attention_scratch_bytes(p);
  };
  constexpr std::size_t kMebibyte = 1 << 20;
  for (const bool weights : {false, true}) {
    CHECK(bytes(4096, 4096, weights) > 0);
    CHECK(bytes(4096, 4096, weights) <= 4 * kMebibyte);
    CHECK(bytes(8192, 8192, weights) <= 2 * bytes(4096, 4096, weights) + kMebibyte);
    CHECK(bytes(1, 1 << 20, weights) <= 4 * kMebibyte);
  }
}
