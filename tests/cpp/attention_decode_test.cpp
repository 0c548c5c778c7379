// Few queries over many keys: key chunks are split and merged, the cache may be half precision.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/compare.h"

using namespace attn;
using namespace attn::test;

TEST_CASE("1..5 queries over 1..5000 keys agree with the reference", "[attention][decode]") {
  Random random("few queries");
  const int lengths[] = {1,   2,   3,   7,    63,   64,   65,   127,  128,  129,  255,  257,
                         511, 512, 513, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097, 5000};
  int n = 0;
  for (const int keys : lengths) {
    const int queries = 1 + n % 5;
    const int group = 1 + n % 4;
    Problem p({.batch = 1 + n % 2,
               .heads = 2 * group,
               .kv_heads = 2,
               .seq_q = queries,
               .seq_k = keys,
               .head_dim = 3 + 4 * (n % 4),
               .value_dim = 1 + 3 * (n % 5)},
              n % 2 == 0 ? Layout::bshd : Layout::bhsd);
    p.fill_random(random, 3.0);
    p.options.causal = n % 3 == 0;
    p.options.query_offset = keys - queries;
    if (n % 4 == 0) p.want_matrix(MatrixStage::weights, {1});
    check_against_reference(p);
    ++n;
  }
}

TEST_CASE("every number of keys 1..200 with one query", "[attention][decode]") {
  Random random("one query");
  for (int keys = 1; keys <= 200; ++keys) {
    Problem p({.batch = 1, .heads = 3, .kv_heads = 1, .seq_q = 1, .seq_k = keys, .head_dim = 9, .value_dim = 7});
    p.fill_random(random, 2.0);
    check_against_reference(p);
  }
}

TEST_CASE("the maximum may sit in any chunk of the keys", "[attention][decode]") {
  for (const int queries : {1, 2, 5}) {
    for (const int position : {0, 1, 511, 512, 513, 1024, 2047, 2048, 2999}) {
      Problem p({.seq_q = queries, .seq_k = 3000});
      for (float& x : p.query) x = 1.0F;
      for (int s = 0; s < 3000; ++s) p.v(0, 0, s, 0) = static_cast<float>(s);
      p.k(0, 0, position, 0) = 1000.0F;
      p.run();
      CHECK(p.out(0, 0, queries - 1, 0) == static_cast<float>(position));
      CHECK(p.lse_at(0, 0, queries - 1) == 1000.0F);
    }
  }
}

TEST_CASE("chunks that are hidden whole, from the left, the right and both sides", "[attention][decode][window][lengths]") {
  Random random("hidden chunks");
  for (const int queries : {1, 3}) {
    for (const int length : {0, 1, 500, 1024, 1025, 3000}) {
      for (const int left : {-1, 0, 40, 1500}) {
        Problem p({.batch = 2, .heads = 2, .kv_heads = 1, .seq_q = queries, .seq_k = 3000, .head_dim = 4, .value_dim = 3});
        p.fill_random(random);
        p.key_lengths = Buffer<std::int32_t>(2);
        p.key_lengths[0] = length;
        p.key_lengths[1] = 3000 - length;
        p.query_offsets = Buffer<std::int32_t>(2);
        for (std::size_t b = 0; b < 2; ++b) p.query_offsets[b] = p.key_lengths[b] - queries;
        p.options.causal = true;
        p.options.window_left = left;
        check_against_reference(p);
      }
    }
  }
}

TEST_CASE("a sink counts once, however many chunks the keys are cut into", "[attention][decode][sinks]") {
  Random random("sink and chunks");
  for (const int queries : {1, 2, 7}) {
    for (const int keys : {1000, 2048, 5000}) {
      Problem p({.batch = 1, .heads = 4, .kv_heads = 2, .seq_q = queries, .seq_k = keys, .head_dim = 3, .value_dim = 2});
      p.fill_random(random);
      p.sinks = Buffer<float>(4);
      for (float& x : p.sinks) x = std::log(static_cast<float>(keys)) + random.real(-1, 1);  // as heavy as all keys together
      check_against_reference(p);
    }
  }
}

TEST_CASE("half-precision keys and values agree with the reference", "[attention][decode][f16]") {
  Random random("half precision");
  for (const Layout layout : {Layout::bhsd, Layout::bshd, Layout::gaps}) {
    for (const int queries : {1, 2, 9, 33}) {
      for (const int keys : {1, 31, 130, 700}) {
        Problem p({.batch = 2,
                   .heads = 4,
                   .kv_heads = 2,
                   .seq_q = queries,
                   .seq_k = keys,
                   .head_dim = 1 + random.integer(0, 70),
                   .value_dim = 1 + random.integer(0, 70)},
                  layout);
        p.fill_random(random, 0.5);
        p.use_f16();
        p.options.causal = true;
        p.options.query_offset = keys - queries;
        if (keys == 130) p.want_matrix(MatrixStage::weights);
        check_against_reference(p);
      }
    }
  }
}

TEST_CASE("half precision that is said to be finite gives the same bits", "[attention][decode][f16]") {
  Random random("finite halves");
  for (const int group : {1, 2, 3, 4, 12}) {
    for (const int keys : {1, 3, 64, 67, 200}) {
      Problem looked({.heads = 2 * group, .kv_heads = 2, .seq_k = keys, .head_dim = 1 + random.integer(0, 70), .value_dim = 33});
      looked.fill_random(random, 1.0);
      looked.use_f16();
      Problem believed = looked;
      believed.options.kv_finite = true;
      looked.run();
      check_against_reference(believed);
      CHECK(believed.output == looked.output);
      CHECK(believed.lse == looked.lse);
    }
  }
}

TEST_CASE("infinities and NaN in half precision are seen by those who see their key, and by nobody else", "[attention][decode][f16][nan]") {
  const int width = 37;  // whole vectors of any length, and a rest
  for (const int special : {0x7C00, 0xFC00, 0x7E00, 0xFD01}) {
    for (const bool in_key : {true, false}) {
      for (const int visible : {90, 70}) {
        for (int column = 0; column < width; ++column) {
          Random random("special halves");
          Problem p({.heads = 4, .kv_heads = 1, .seq_k = 100, .head_dim = width, .value_dim = width});
          p.fill_random(random, 1.0);
          p.use_f16();
          (in_key ? p.key_f16 : p.value_f16)[static_cast<std::size_t>(80 * width + column)] = static_cast<std::uint16_t>(special);
          p.add_mask(1, 1, 1, 100);
          for (int s = visible; s < 100; ++s) p.mask_at(0, 0, 0, s) = 0;
          INFO("bits " << special << (in_key ? " in a key, " : " in a value, ") << "column " << column << ", " << visible
                       << " keys are seen");
          check_against_reference(p);
          CHECK(std::isfinite(p.out(0, 0, 0, column)) == (visible == 70 || (in_key && std::isfinite(p.lse_at(0, 0, 0)))));
        }
      }
    }
  }
}

TEST_CASE("half-precision keys meet queries of any size, and the smallest halves count", "[attention][decode][f16]") {
  for (const float size : {1e-30F, 1e-3F, 1.0F, 1e15F, 3e20F, 1e30F, 3e38F}) {
    for (const float key : {6e-8F, 1e-6F, 6.2e-5F, 1.0F, 65504.0F}) {
      Problem p({.heads = 4, .kv_heads = 1, .seq_k = 70, .head_dim = 8, .value_dim = 4});
      for (int h = 0; h < 4; ++h) p.q(0, h, 0, h) = size;
      for (int s = 0; s < 70; ++s) p.k(0, 0, s, 2) = static_cast<float>(s % 7 - 3) * key / 3.0F;
      for (int s = 0; s < 70; ++s) p.v(0, 0, s, 1) = static_cast<float>(s) * 6e-8F;
      p.use_f16();
      // The largest score is about 20, whatever the sizes are.
      p.options.scale = std::min(20.0F / size / key, 3e38F);
      INFO("query " << size << ", key " << key);
      check_against_reference(p);
    }
  }
}

TEST_CASE("queries too large for the factor that half-precision keys bring meet keys of 0", "[attention][decode][f16]") {
  for (const float size : {1e19F, 3e20F, 1e30F, 3e38F}) {
    Problem p({.heads = 4, .kv_heads = 1, .seq_k = 50, .head_dim = 8, .value_dim = 4});
    for (float& x : p.query) x = size;
    for (float& x : p.value) x = 2.0F;
    p.use_f16();
    INFO("query " << size);
    check_against_reference(p);
    CHECK(p.out(0, 3, 0, 3) == 2.0F);
  }
}

TEST_CASE("every half-precision bit pattern is read as its value", "[attention][f16]") {
  // One key a call-row: the weight is 1, so the output is the value itself. 256 rows x 256 values, each row sees its own key.
  Problem p({.seq_q = 256, .seq_k = 256, .head_dim = 1, .value_dim = 256});
  p.use_f16();
  for (int s = 0; s < 256; ++s) {
    for (int i = 0; i < 256; ++i) p.value_f16[static_cast<std::size_t>(s * 256 + i)] = static_cast<std::uint16_t>(s * 256 + i);
  }
  p.options.window_left = 0;
  p.options.window_right = 0;
  check_against_reference(p);
  // The decode path reads them too.
  for (int s = 0; s < 256; s += 3) {
    Problem one({.seq_q = 1, .seq_k = 1, .head_dim = 1, .value_dim = 256});
    one.use_f16();
    for (int i = 0; i < 256; ++i) one.value_f16[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(s * 256 + i);
    check_against_reference(one);
  }
}

TEST_CASE("law: decoding step by step equals one causal pass", "[attention][decode][laws]") {
  Random random("step by step");
  const int length = 70;
  Problem whole({.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = length, .seq_k = length, .head_dim = 8, .value_dim = 5});
  whole.fill_random(random, 2.0);
  whole.options.causal = true;
  whole.run();
  for (int t = 0; t < length; ++t) {
    Problem step({.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 1, .seq_k = length, .head_dim = 8, .value_dim = 5});
    step.key = whole.key;
    step.value = whole.value;
    step.key_lengths = Buffer<std::int32_t>(2);
    step.key_lengths[0] = step.key_lengths[1] = t + 1;  // a cache of larger capacity
    for (int b = 0; b < 2; ++b) {
      for (int h = 0; h < 4; ++h) {
        for (int i = 0; i < 8; ++i) step.q(b, h, 0, i) = whole.q(b, h, t, i);
      }
    }
    step.run();
    bool good = true;
    for (int b = 0; b < 2; ++b) {
      for (int h = 0; h < 4; ++h) {
        for (int i = 0; i < 5; ++i) good = good && agrees(step.out(b, h, 0, i), whole.out(b, h, t, i), 2e-6);
      }
    }
    INFO("step " << t);
    CHECK(good);
  }
}
