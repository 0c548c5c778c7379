// Causal alignment, per-batch offsets and sliding windows.

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "support/compare.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

/// Equal scores over the values given: each output is the mean of what the row sees.
std::vector<float> means(int queries, std::initializer_list<float> values, bool causal, int offset, int left = -1, int right = -1) {
  Problem p({.seq_q = queries, .seq_k = static_cast<int>(values.size())});
  p.set_value(values);
  p.options.causal = causal;
  p.options.query_offset = offset;
  p.options.window_left = left;
  p.options.window_right = right;
  check_against_reference(p);
  return dense_output(p);
}

void check_near(const std::vector<float>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(agrees(got[i], want[i], 10 * kClosedForm));
}

}  // namespace

TEST_CASE("N03: causal, square", "[attention][causal]") { check_near(means(3, {3, 6, 9}, true, 0), {3, 4.5, 6}); }

TEST_CASE("N04: causal with more keys than queries, aligned to the end and to the start", "[attention][causal]") {
  check_near(means(1, {1, 2, 3, 4}, true, 3), {2.5});
  check_near(means(2, {1, 2, 3, 4}, true, 2), {2, 2.5});
  check_near(means(1, {1, 2, 3, 4}, true, 0), {1});
  check_near(means(2, {1, 2, 3, 4}, true, 0), {1, 1.5});
}

TEST_CASE("a negative offset leaves the leading rows empty", "[attention][causal]") {
  check_near(means(4, {1, 2}, true, -2), {0, 0, 1, 1.5});
  check_near(means(2, {1, 2}, true, -5), {0, 0});
}

TEST_CASE("N23: window", "[attention][window]") {
  check_near(means(5, {1, 2, 4, 8, 16}, false, 0, 0, 0), {1, 2, 4, 8, 16});
  check_near(means(3, {2, 4, 8}, true, 0, 1), {2, 3, 6});
  check_near(means(5, {0, 1, 2, 3, 4}, false, 0, 1, 2), {1, 1.5, 2.5, 3, 3.5});
  check_near(means(5, {0, 1, 2, 3, 4}, false, 0, 2, -1), {2, 2, 2, 2.5, 3});
  check_near(means(5, {0, 1, 2, 3, 4}, false, 0, -1, 0), {0, 0.5, 1, 1.5, 2});
  // causal hides what the window to the right would show
  check_near(means(3, {3, 6, 9}, true, 0, -1, 5), {3, 4.5, 6});
  // the window lies wholly before or behind the keys
  check_near(means(2, {1, 2}, false, 10, 3, 3), {0, 0});
  check_near(means(2, {1, 2}, false, -10, 3, 3), {0, 0});
}

TEST_CASE("offsets and windows at the ends of int32 do not wrap around", "[attention][causal][window]") {
  constexpr int kMax = std::numeric_limits<std::int32_t>::max();
  constexpr int kMin = std::numeric_limits<std::int32_t>::min();
  check_near(means(3, {1, 2, 6}, true, kMax), {3, 3, 3});
  check_near(means(3, {1, 2, 6}, true, kMin), {0, 0, 0});
  check_near(means(3, {1, 2, 6}, false, 0, kMax, kMax), {3, 3, 3});
  check_near(means(3, {1, 2, 6}, true, 0, kMax, kMax), {1, 1.5, 3});
  check_near(means(3, {1, 2, 6}, false, kMax, kMax, kMax), {3, 4, 6});  // p - left = 0, 1, 2
  check_near(means(3, {1, 2, 6}, false, kMax, 0, kMax), {0, 0, 0});
  check_near(means(3, {1, 2, 6}, false, kMin, kMax, kMax), {0, 1, 1.5});  // p + right = -1, 0, 1
  check_near(means(3, {1, 2, 6}, false, kMin, kMax, 0), {0, 0, 0});
}

TEST_CASE("each batch row has its own offset", "[attention][causal]") {
  Random random("batch offsets");
  for (const int queries : {1, 4, 40}) {
    Problem p({.batch = 5, .heads = 2, .kv_heads = 1, .seq_q = queries, .seq_k = 200, .head_dim = 3, .value_dim = 2});
    p.fill_random(random);
    p.options.causal = true;
    p.options.query_offset = 12345;  // not looked at
    p.query_offsets = Buffer<std::int32_t>(5);
    const int offsets[] = {-20, 0, 127, 128, 199};
    for (std::size_t b = 0; b < 5; ++b) p.query_offsets[b] = offsets[b];
    check_against_reference(p);

    // nonpad_kv_seqlen of ONNX: lengths, and offset = length - seq_len_q, not clamped
    p.key_lengths = Buffer<std::int32_t>(5);
    for (std::size_t b = 0; b < 5; ++b) {
      p.key_lengths[b] = static_cast<int>(b) * 45 + 10;
      p.query_offsets[b] = p.key_lengths[b] - queries;
    }
    check_against_reference(p);
  }
}

TEST_CASE("the edges of causal and window at every position around tiles", "[attention][causal][window]") {
  // One hidden key too many or too few changes the mean of 0, 1, 2, ... by about 1/2.
  const int keys = 300;
  for (const int queries : {1, 3, 33, 70}) {
    for (const int offset : {0, 1, 31, 32, 33, 95, 126, 127, 128, 129, 230, 255, 256, 257, 299}) {
      for (const int left : {-1, 0, 5, 126, 127, 128}) {
        Problem p({.seq_q = queries, .seq_k = keys});
        for (int s = 0; s < keys; ++s) p.v(0, 0, s, 0) = static_cast<float>(s);
        p.options.causal = true;
        p.options.query_offset = offset;
        p.options.window_left = left;
        p.run();
        bool good = true;
        for (int t = 0; t < queries; ++t) {
          const int last = std::min(t + offset, keys - 1);
          const int first = left < 0 ? 0 : std::max(0, t + offset - left);
          const double want = first > last ? 0.0 : (first + last) / 2.0;
          good = good && agrees(p.out(0, 0, t, 0), want, 1e-6 * keys);
        }
        INFO(p.describe());
        CHECK(good);
      }
    }
  }
}
