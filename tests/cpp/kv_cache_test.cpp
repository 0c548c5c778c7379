// The key/value cache: append, drop from the front, reorder, copy. Every element of the memory is followed by a model in plain code.

#include "attn/kv_cache.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "reference/half.h"
#include "support/half.h"
#include "support/problem.h"

using namespace attn;
using namespace attn::test;

namespace {

/// A cache with its memory. Values are compared as floats, so that both element types share the tests.
struct Cache {
  Cache(KvType type, int batch, int heads, int capacity, int head_dim, int value_dim)
      : lengths(static_cast<std::size_t>(batch)),
        key(words(type, batch * heads * capacity * head_dim)),
        value(words(type, batch * heads * capacity * value_dim)) {
    for (std::int32_t& n : lengths) n = 0;
    view.type = type;
    view.batch_size = batch;
    view.num_kv_heads = heads;
    view.capacity = capacity;
    view.head_dim = head_dim;
    view.value_dim = value_dim;
  }
  KvCache linked() {
    view.key = key.data();
    view.value = value.data();
    view.lengths = lengths.data();
    return view;
  }
  /// float16 elements lie two to a word
  static std::size_t words(KvType type, int elements) {
    return static_cast<std::size_t>(type == KvType::f16 ? (elements + 1) / 2 : elements);
  }
  /// element of row `row` of the memory, valid or not
  float read(bool of_value, int b, int h, int row, int i) const {
    const Buffer<float>& from = of_value ? value : key;
    const int width = of_value ? view.value_dim : view.head_dim;
    const auto at = static_cast<std::size_t>(((b * view.num_kv_heads + h) * view.capacity + row) * width + i);
    if (view.type == KvType::f16) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, reinterpret_cast<const unsigned char*>(from.data()) + at * 2, 2);
      return reference::half_value(bits);
    }
    return from[at];
  }
  float k(int b, int h, int s, int i) const { return read(false, b, h, view.start + s, i); }
  float v(int b, int h, int s, int i) const { return read(true, b, h, view.start + s, i); }
  [[nodiscard]] bool intact() const { return key.intact() && value.intact() && lengths.intact(); }
  bool same_memory(const Cache& other) const { return key == other.key && value == other.value && lengths == other.lengths; }

  Buffer<std::int32_t> lengths;
  Buffer<float> key, value;
  KvCache view;
};

/// A number that tells where it came from; exact in float16.
float mark(int b, int h, int s, int i, bool of_value) {
  return static_cast<float>(((b * 5 + h * 3 + s * 7 + i) % 500) * 2 + (of_value ? 1 : 0)) - 400.0F;
}

/// New rows that continue each batch row, heads first or positions first.
struct NewRows {
  NewRows(const Cache& cache, int seq_len, Layout layout, KvType type) {
    const KvCache& c = cache.view;
    const Placement k = Placement::of(layout, c.batch_size, c.num_kv_heads, seq_len, c.head_dim);
    const Placement v = Placement::of(layout, c.batch_size, c.num_kv_heads, seq_len, c.value_dim);
    key = Buffer<float>(k.elements);
    value = Buffer<float>(v.elements);
    for (int b = 0; b < c.batch_size; ++b) {
      const int first = cache.lengths[static_cast<std::size_t>(b)];
      for (int h = 0; h < c.num_kv_heads; ++h) {
        for (int t = 0; t < seq_len; ++t) {
          const auto at = [&](const Strides& s) { return b * s.batch + h * s.head + t * s.row; };
          for (int i = 0; i < c.head_dim; ++i) key[static_cast<std::size_t>(at(k.strides) + i)] = mark(b, h, first + t, i, false);
          for (int i = 0; i < c.value_dim; ++i) value[static_cast<std::size_t>(at(v.strides) + i)] = mark(b, h, first + t, i, true);
        }
      }
    }
    key_f16 = Buffer<std::uint16_t>(key.size());
    value_f16 = Buffer<std::uint16_t>(value.size());
    for (std::size_t i = 0; i < key.size(); ++i) key_f16[i] = to_half(key[i]);
    for (std::size_t i = 0; i < value.size(); ++i) value_f16[i] = to_half(value[i]);
    params.key_strides = k.strides;
    params.value_strides = v.strides;
    params.source_type = type;
    params.key = type == KvType::f16 ? static_cast<const void*>(key_f16.data()) : key.data();
    params.value = type == KvType::f16 ? static_cast<const void*>(value_f16.data()) : value.data();
    params.seq_len = seq_len;
  }
  NewRows(const NewRows&) = delete;
  Buffer<float> key, value;
  Buffer<std::uint16_t> key_f16, value_f16;
  KvAppendParams params;
};

/// Appends `counts[b]` of `seq_len` rows and commits them.
void append(Cache& cache, int seq_len, const std::vector<std::int32_t>& counts, Layout layout, KvType type) {
  NewRows rows(cache, seq_len, layout, type);
  rows.params.cache = cache.linked();
  rows.params.new_lengths = counts.data();
  const Buffer<std::int32_t> lengths = cache.lengths;
  REQUIRE(kv_cache_append(rows.params) == Status::ok);
  CHECK(cache.lengths == lengths);
  CHECK(cache.intact());
  for (std::size_t b = 0; b < counts.size(); ++b) cache.lengths[b] += counts[b];
}

/// Each batch row holds the marks of batch row `origin(b)` from `first(b)` on.
bool holds(const Cache& cache, const std::function<int(int)>& origin, const std::function<int(int)>& first) {
  for (int b = 0; b < cache.view.batch_size; ++b) {
    for (int h = 0; h < cache.view.num_kv_heads; ++h) {
      for (int s = 0; s < cache.lengths[static_cast<std::size_t>(b)]; ++s) {
        for (int i = 0; i < cache.view.head_dim; ++i) {
          if (cache.k(b, h, s, i) != mark(origin(b), h, first(b) + s, i, false)) return false;
        }
        for (int i = 0; i < cache.view.value_dim; ++i) {
          if (cache.v(b, h, s, i) != mark(origin(b), h, first(b) + s, i, true)) return false;
        }
      }
    }
  }
  return true;
}

int same(int b) { return b; }
int zero(int /*b*/) { return 0; }

Cache filled(KvType type, const std::vector<std::int32_t>& lengths, int start = 0) {
  Cache cache(type, static_cast<int>(lengths.size()), 2, 12, 5, 3);
  cache.view.start = start;
  append(cache, 9, lengths, Layout::bhsd, KvType::f32);
  return cache;
}

}  // namespace

TEST_CASE("rows are appended behind the valid ones, batch row by batch row, in either type and layout", "[kv_cache]") {
  for (const KvType cache_type : {KvType::f32, KvType::f16}) {
    for (const KvType source_type : {KvType::f32, KvType::f16}) {
      for (const Layout layout : {Layout::bhsd, Layout::bshd}) {
        for (const int head_dim : {1, 4, 7, 8, 33}) {
          Cache cache(cache_type, 3, 2, 20, head_dim, head_dim + 2);
          append(cache, 1, {1, 1, 1}, layout, source_type);
          append(cache, 5, {5, 0, 3}, layout, source_type);
          append(cache, 14, {14, 2, 14}, layout, source_type);
          CHECK(holds(cache, same, zero));
          // What lies behind the valid rows has never been written: batch row 1 holds 3 rows.
          CHECK(std::isnan(cache.k(1, 0, 3, 0)));
          CHECK(std::isnan(cache.v(1, 1, 19, head_dim + 1)));
        }
      }
    }
  }
}

TEST_CASE("an append tells whether half-precision rows stayed finite", "[kv_cache][f16]") {
  for (const KvType type : {KvType::f32, KvType::f16}) {
    for (const KvType source : {KvType::f32, KvType::f16}) {
      for (const float odd : {65504.0F, 65520.0F, INFINITY, -INFINITY, NAN}) {
        for (const bool in_key : {true, false}) {
          for (const int row : {0, 2}) {
            for (int column = 0; column < (in_key ? 37 : 20); ++column) {
              Cache cache(type, 2, 2, 8, 37, 20);
              NewRows rows(cache, 3, Layout::bhsd, source);
              // A row of the last head. Only two rows of the second batch row are taken.
              const int width = in_key ? 37 : 20;
              const auto at = static_cast<std::size_t>(((1 * 2 + 1) * 3 + row) * width + column);
              (in_key ? rows.key : rows.value)[at] = odd;
              (in_key ? rows.key_f16 : rows.value_f16)[at] = to_half(odd);
              const std::vector<std::int32_t> counts{3, 2};
              std::int32_t finite = 1;
              rows.params.cache = cache.linked();
              rows.params.new_lengths = counts.data();
              rows.params.finite = &finite;
              REQUIRE(kv_cache_append(rows.params) == Status::ok);
              REQUIRE(finite == (type == KvType::f16 && row < 2 && odd != 65504.0F ? 0 : 1));
              finite = 0;
              REQUIRE(kv_cache_append(rows.params) == Status::ok);
              REQUIRE(finite == 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("keys are turned on their way into the cache", "[kv_cache][rotary]") {
  Cache cache(KvType::f32, 1, 1, 4, 2, 1);
  const float cos[3] = {1, 0, -1};
  const float sin[3] = {0, 1, 0};
  const float key[4] = {3, 4, 5, 6};
  const float value[2] = {1, 2};
  const std::int32_t positions[2] = {1, 2};
  KvAppendParams p;
  p.cache = cache.linked();
  p.key = key;
  p.value = value;
  p.key_strides = {4, 4, 2};
  p.value_strides = {2, 2, 1};
  p.seq_len = 2;
  p.rotary = {cos, sin, 3, 2, false};
  p.positions = {positions, 2};
  REQUIRE(kv_cache_append(p) == Status::ok);
  CHECK((cache.k(0, 0, 0, 0) == -4.0F && cache.k(0, 0, 0, 1) == 3.0F));   // a quarter turn
  CHECK((cache.k(0, 0, 1, 0) == -5.0F && cache.k(0, 0, 1, 1) == -6.0F));  // a half turn
  CHECK((cache.v(0, 0, 0, 0) == 1.0F && cache.v(0, 0, 1, 0) == 2.0F));
}

TEST_CASE("dropping the front moves what is left to row 0", "[kv_cache]") {
  for (const KvType type : {KvType::f32, KvType::f16}) {
    for (const int start : {0, 3}) {
      Cache cache = filled(type, {9, 4, 0}, start);
      const std::int32_t first[3] = {5, 4, 0};
      REQUIRE(kv_cache_drop_front(cache.linked(), first) == Status::ok);
      CHECK(cache.intact());
      cache.view.start = 0;
      for (std::size_t b = 0; b < 3; ++b) cache.lengths[b] -= first[b];
      CHECK(holds(cache, same, [&](int b) { return first[b]; }));
    }
  }
}

TEST_CASE("beam search: every map of 4 batch rows to 4 sources", "[kv_cache]") {
  const std::vector<std::int32_t> lengths = {9, 4, 0, 7};
  for (const KvType type : {KvType::f32, KvType::f16}) {
    const Cache before = filled(type, lengths, type == KvType::f16 ? 2 : 0);
    bool good = true;
    for (int code = 0; code < 256; ++code) {
      const std::int32_t sources[4] = {code % 4, code / 4 % 4, code / 16 % 4, code / 64};
      Cache cache = before;
      std::int32_t scratch[8] = {-7, 99, -7, 99, -7, 99, -7, 99};
      good = good && kv_cache_reorder(cache.linked(), sources, scratch) == Status::ok && cache.intact() && cache.lengths == before.lengths;
      for (std::size_t b = 0; b < 4; ++b) cache.lengths[b] = lengths[static_cast<std::size_t>(sources[b])];
      good = good && holds(cache, [&](int b) { return sources[b]; }, zero);
    }
    CHECK(good);
  }
}

TEST_CASE("a cache grows by copying into a larger one, and may shrink to what is valid", "[kv_cache]") {
  for (const int capacity : {9, 12, 40}) {
    Cache from = filled(KvType::f32, {9, 4, 0}, 2);
    Cache to(KvType::f32, 3, 2, capacity, 5, 3);
    REQUIRE(kv_cache_copy(from.linked(), to.linked()) == Status::ok);
    CHECK(to.intact());
    to.lengths = from.lengths;
    CHECK(holds(to, same, zero));
  }
  Cache from = filled(KvType::f32, {9, 4, 0});
  Cache small(KvType::f32, 3, 2, 8, 5, 3);
  CHECK(kv_cache_copy(from.linked(), small.linked()) != Status::ok);
  Cache other(KvType::f16, 3, 2, 12, 5, 3);
  CHECK(kv_cache_copy(from.linked(), other.linked()) == Status::invalid_shape);
}

TEST_CASE("F02: what has no room or makes no sense is refused and leaves the cache intact", "[kv_cache][status]") {
  Cache cache = filled(KvType::f32, {9, 4, 0});
  const Cache before = cache;
  NewRows rows(cache, 4, Layout::bhsd, KvType::f32);
  const auto run = [&](auto spoil) {
    KvAppendParams p = rows.params;
    p.cache = cache.linked();
    spoil(p);
    return kv_cache_append(p);
  };
  static const std::int32_t too_many[] = {3, 5, 0};
  static const std::int32_t negative[] = {3, -1, 0};
  static const std::int32_t wrong_lengths[] = {13, 0, 0};
  CHECK(run([](KvAppendParams&) {}) == Status::invalid_option);  // 9 + 4 rows of 12
  CHECK(run([](KvAppendParams& p) { p.new_lengths = too_many; }) == Status::invalid_option);
  CHECK(run([](KvAppendParams& p) { p.new_lengths = negative; }) == Status::invalid_option);
  CHECK(run([](KvAppendParams& p) { p.cache.lengths = wrong_lengths; }) == Status::invalid_option);
  CHECK(run([](KvAppendParams& p) { p.cache.capacity = -1; }) == Status::invalid_shape);
  CHECK(run([](KvAppendParams& p) { p.seq_len = -1; }) == Status::invalid_shape);
  CHECK(run([](KvAppendParams& p) { p.cache.start = 4; }) == Status::invalid_option);
  static const std::int32_t nothing[] = {0, 0, 0};
  CHECK(run([](KvAppendParams& p) {
          p.new_lengths = nothing;
          p.key = nullptr;
        }) == Status::missing_pointer);
  static const std::int32_t beyond[] = {0, 3, 1};
  std::int32_t scratch[6] = {};
  CHECK(kv_cache_reorder(cache.linked(), beyond, scratch) == Status::invalid_option);
  CHECK(kv_cache_reorder(cache.linked(), nullptr, scratch) == Status::missing_pointer);
  static const std::int32_t more_than_there[] = {9, 5, 0};
  CHECK(kv_cache_drop_front(cache.linked(), more_than_there) == Status::invalid_option);
  CHECK(cache.same_memory(before));
}
