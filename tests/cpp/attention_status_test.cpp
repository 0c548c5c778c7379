// Parameters that are refused: the right Status, and nothing written.

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "support/problem.h"
#include "support/scratch.h"

using namespace attn;
using namespace attn::test;

namespace {

Problem good_problem() {
  Random random("good problem");
  Problem p({.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 3, .seq_k = 5, .head_dim = 6, .value_dim = 7});
  p.fill_random(random);
  p.want_matrix(MatrixStage::weights, {1, 2});
  p.key_lengths = Buffer<std::int32_t>(2);
  p.key_lengths[0] = 5;
  p.key_lengths[1] = 4;
  return p;
}

/// The good problem with one thing spoilt.
void check_refused(const char* what, Status want, const std::function<void(AttentionParams&)>& spoil) {
  INFO(what);
  Problem p = good_problem();
  const Problem before = p;
  Scratch scratch(attention_scratch_bytes(p.params()) + 65536);
  AttentionParams params = p.params();
  spoil(params);
  CHECK(attention_scratch_bytes(params) == 0);
  CHECK(attention_forward(params, scratch.data(), scratch.bytes()) == want);
  CHECK((p.output == before.output && p.lse == before.lse && p.matrix == before.matrix));
}

}  // namespace

TEST_CASE("sizes that contradict each other or do not fit are invalid_shape", "[attention][status]") {
  const auto refuse = [](const char* what, const std::function<void(AttentionParams&)>& spoil) {
    check_refused(what, Status::invalid_shape, spoil);
  };
  refuse("batch_size -1", [](AttentionParams& p) { p.batch_size = -1; });
  refuse("num_heads -1", [](AttentionParams& p) { p.num_heads = -4; });
  refuse("num_kv_heads -1", [](AttentionParams& p) { p.num_kv_heads = -2; });
  refuse("seq_len_q -1", [](AttentionParams& p) { p.seq_len_q = -1; });
  refuse("seq_len_k -1", [](AttentionParams& p) { p.seq_len_k = -1; });
  refuse("head_dim -1", [](AttentionParams& p) { p.head_dim = -1; });
  refuse("value_dim -1", [](AttentionParams& p) { p.value_dim = -1; });
  refuse("N10: 4 heads, 3 key heads", [](AttentionParams& p) { p.num_kv_heads = 3; });
  refuse("N10: 4 heads, 8 key heads", [](AttentionParams& p) { p.num_kv_heads = 8; });
  refuse("N10: no key heads", [](AttentionParams& p) { p.num_kv_heads = 0; });
  // N19: 2^32 as a product, which wraps around to 0, and 2^31, which wraps to a negative number
  refuse("2^32 query elements", [](AttentionParams& p) {
    p.num_heads = p.num_kv_heads = 1 << 10;
    p.seq_len_q = 1 << 12;
    p.head_dim = 1 << 9;
    p.batch_size = 2;
  });
  refuse("2^31 key elements", [](AttentionParams& p) {
    p.batch_size = 1;
    p.num_heads = p.num_kv_heads = 1;
    p.seq_len_q = 1;
    p.seq_len_k = 1 << 20;
    p.head_dim = 1 << 11;
  });
  refuse("2^64 elements", [](AttentionParams& p) {
    p.batch_size = p.seq_len_q = p.seq_len_k = p.head_dim = 1 << 16;
    p.num_heads = p.num_kv_heads = 1 << 16;
  });
  refuse("2^32 rows of width 0, each with its lse", [](AttentionParams& p) {
    p.batch_size = p.num_heads = p.num_kv_heads = 1 << 16;
    p.seq_len_q = 1;
    p.head_dim = p.value_dim = 0;
    p.key_lengths = nullptr;
    p.matrix = nullptr;
    p.matrix_stage = MatrixStage::none;
  });
  refuse("2^34 matrix elements", [](AttentionParams& p) {
    p.batch_size = 1;
    p.head_dim = p.value_dim = 1;
    p.seq_len_q = p.seq_len_k = 1 << 17;
    p.key_lengths = nullptr;
  });
}

TEST_CASE("options outside their range are invalid_option", "[attention][status]") {
  const auto refuse = [](const char* what, const std::function<void(AttentionParams&)>& spoil) {
    check_refused(what, Status::invalid_option, spoil);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  refuse("N15: scale NaN", [&](AttentionParams& p) { p.scale = nan; });
  refuse("scale inf", [&](AttentionParams& p) { p.scale = inf; });
  refuse("scale -inf", [&](AttentionParams& p) { p.scale = -inf; });
  refuse("softcap NaN", [&](AttentionParams& p) { p.softcap = nan; });
  refuse("softcap -1", [](AttentionParams& p) { p.softcap = -1.0F; });
  refuse("window_left -2", [](AttentionParams& p) { p.window_left = -2; });
  refuse("window_right -2", [](AttentionParams& p) { p.window_right = -2; });
  refuse("unknown kv_type", [](AttentionParams& p) { p.kv_type = static_cast<KvType>(2); });
  refuse("unknown matrix_stage", [](AttentionParams& p) { p.matrix_stage = static_cast<MatrixStage>(4); });
  refuse("mean of scores", [](AttentionParams& p) {
    p.matrix_stage = MatrixStage::scaled_scores;
    p.matrix_mean = true;
  });
  static const std::int32_t too_long[] = {5, 6};
  static const std::int32_t negative[] = {-1, 5};
  refuse("length beyond seq_len_k", [](AttentionParams& p) { p.key_lengths = too_long; });
  refuse("negative length", [](AttentionParams& p) { p.key_lengths = negative; });
  static const std::int32_t no_such_head[] = {0, 4};
  static const std::int32_t negative_head[] = {-1, 0};
  refuse("matrix of head 4 of 4", [](AttentionParams& p) { p.matrix_heads = no_such_head; });
  refuse("matrix of head -1", [](AttentionParams& p) { p.matrix_heads = negative_head; });
  refuse("num_matrix_heads -1", [](AttentionParams& p) { p.num_matrix_heads = -1; });
}

TEST_CASE("pointers that the sizes make necessary", "[attention][status]") {
  const auto refuse = [](const char* what, const std::function<void(AttentionParams&)>& spoil) {
    check_refused(what, Status::missing_pointer, spoil);
  };
  refuse("no query", [](AttentionParams& p) { p.query = nullptr; });
  refuse("no key", [](AttentionParams& p) { p.key = nullptr; });
  refuse("no value", [](AttentionParams& p) { p.value = nullptr; });
}

TEST_CASE("scratch that is too small is refused, scratch of the size asked for is enough", "[attention][status]") {
  Problem p = good_problem();
  const std::size_t bytes = attention_scratch_bytes(p.params());
  REQUIRE(bytes > 0);
  const Problem before = p;
  Scratch scratch(bytes);
  CHECK(attention_forward(p.params(), scratch.data(), bytes - 1) == Status::scratch_too_small);
  CHECK(attention_forward(p.params(), nullptr, 0) != Status::ok);
  CHECK((p.output == before.output && p.lse == before.lse && p.matrix == before.matrix));
  CHECK(attention_forward(p.params(), scratch.data(), bytes) == Status::ok);
}
