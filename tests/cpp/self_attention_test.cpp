// The seven steps, each against the reference, and the laws that tie them to one another.

#include "attn/self_attention.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "attn/projection.h"
#include "reference/attention_reference.h"
#include "reference/projection_reference.h"
#include "reference/rms_norm_reference.h"
#include "reference/rotary_reference.h"
#include "support/buffer.h"
#include "support/random.h"
#include "support/scratch.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

/// Numbers of about 1 through a handful of steps in float32: a few dozen epsilon.
constexpr double kSteps = 64 * kEpsilon;

struct Sizes {
  int batch = 2, heads = 4, kv_heads = 2, seq_q = 5, seq_k = 5, x_dim = 12, key_x_dim = 12, head_dim = 6, value_dim = 5, output_dim = 9;
};

Buffer<float> random_buffer(Random& random, std::size_t size, double amplitude = 1.0) {
  Buffer<float> x(size);
  for (float& value : x) value = random.real(-amplitude, amplitude);
  return x;
}

template <typename... Factors>
std::size_t product(Factors... factors) {
  return (std::size_t{1} * ... * static_cast<std::size_t>(factors));
}

/// A weight [groups * group_dim, in_dim] with bias, and its packed form.
struct Weight {
  Weight(Random& random, int groups, int group_dim, int in_dim)
      : matrix(random_buffer(random, product(groups, group_dim, in_dim), std::sqrt(3.0 / in_dim))),
        bias(random_buffer(random, product(groups, group_dim), 0.5)),
        packed(packed_elements(groups, group_dim, in_dim) * sizeof(float)) {
    view = {matrix.data(), WeightType::f32, groups, group_dim, in_dim, in_dim, 1};
    REQUIRE(pack_matrix(view, bias.data(), static_cast<float*>(packed.data())) == Status::ok);
  }
  Weight(const Weight&) = delete;
  [[nodiscard]] const float* data() { return static_cast<const float*>(packed.data()); }
  [[nodiscard]] std::vector<double> apply(const float* x, int rows) const { return reference::project(x, rows, view, bias.data()); }

  Buffer<float> matrix, bias;
  Scratch packed;
  MatrixView view;
};

/// A layer with its weights, inputs and every traced step.
struct Layer {
  Layer(Random& random, const Sizes& s)
      : sizes(s),
        wq(random, s.heads, s.head_dim, s.x_dim),
        wk(random, s.kv_heads, s.head_dim, s.key_x_dim),
        wv(random, s.kv_heads, s.value_dim, s.key_x_dim),
        wo(random, 1, s.output_dim, s.heads * s.value_dim),
        x(random_buffer(random, product(s.batch, s.seq_q, s.x_dim))),
        memory(random_buffer(random, product(s.batch, s.seq_k, s.key_x_dim))),
        output(product(s.batch, s.seq_q, s.output_dim)),
        query(product(s.batch, s.heads, s.seq_q, s.head_dim)),
        key(product(s.batch, s.kv_heads, s.seq_k, s.head_dim)),
        value(product(s.batch, s.kv_heads, s.seq_k, s.value_dim)),
        scores(product(s.batch, s.heads, s.seq_q, s.seq_k)),
        scaled(scores.size()),
        masked(scores.size()),
        weights(scores.size()),
        context(product(s.batch, s.seq_q, s.heads * s.value_dim)) {
    params.x = x.data();
    params.key_x = params.value_x = memory.data();
    params.x_dim = s.x_dim;
    params.key_x_dim = params.value_x_dim = s.key_x_dim;
    params.seq_len_new = s.seq_k;
    params.packed_query = wq.data();
    params.packed_key = wk.data();
    params.packed_value = wv.data();
    params.packed_output = wo.data();
    params.output = output.data();
    params.output_dim = s.output_dim;
    AttentionParams& a = params.attention;
    a.batch_size = s.batch;
    a.num_heads = s.heads;
    a.num_kv_heads = s.kv_heads;
    a.seq_len_q = s.seq_q;
    a.seq_len_k = s.seq_k;
    a.head_dim = s.head_dim;
    a.value_dim = s.value_dim;
    a.scale = static_cast<float>(1 / std::sqrt(s.head_dim));
  }
  Layer(const Layer&) = delete;

  void trace() {
    params.trace = {query.data(), key.data(), value.data(), scores.data(), scaled.data(), masked.data(), weights.data(), context.data()};
  }
  Status run() {
    output.erase();
    Scratch scratch(self_attention_scratch_bytes(params), 64);
    const Status status = self_attention(params, scratch.data(), scratch.bytes());
    CHECK(scratch.intact());
    CHECK((output.intact() && query.intact() && key.intact() && value.intact() && context.intact()));
    CHECK((scores.intact() && scaled.intact() && masked.intact() && weights.intact()));
    return status;
  }

  Sizes sizes;
  Weight wq, wk, wv, wo;
  Buffer<float> x, memory, output, query, key, value, scores, scaled, masked, weights, context;
  SelfAttentionParams params;
};

bool close(const Buffer<float>& got, const std::vector<double>& want, double tolerance = kSteps) {
  if (got.size() != want.size()) return false;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (double{got[i]} == want[i]) continue;  // infinities
    if (!(std::fabs(double{got[i]} - want[i]) <= tolerance * (1 + std::fabs(want[i])))) return false;
  }
  return true;
}

/// [batch, rows, heads * dim] as it is projected → [batch, heads, rows, dim], with norm and rotary positions where given.
std::vector<double> heads_first(const std::vector<double>& projected, int batch, int heads, int rows, int dim, const float* norm,
                                float epsilon, const RotaryTable& rotary, const RotaryPositions& positions) {
  std::vector<double> result;
  for (int b = 0; b < batch; ++b) {
    for (int h = 0; h < heads; ++h) {
      for (int t = 0; t < rows; ++t) {
        const double* from = projected.data() + ((b * rows + t) * heads + h) * dim;
        std::vector<double> row(from, from + dim);
        if (norm != nullptr) row = reference::rms_norm_row(row, norm, double{epsilon});
        if (rotary.cos != nullptr) {
          const std::ptrdiff_t at =
              (positions.rows != nullptr ? positions.rows[b * positions.batch_stride + t] : t) * (rotary.rotary_dim / 2);
          row = reference::rotary_row(row, rotary.cos + at, rotary.sin + at, rotary.rotary_dim, rotary.interleaved);
        }
        result.insert(result.end(), row.begin(), row.end());
      }
    }
  }
  return result;
}

/// Runs with every step traced. Each step is held against the reference of that step on the traced step before it.
void check_steps(Layer& layer) {
  layer.trace();
  REQUIRE(layer.run() == Status::ok);
  const Sizes& s = layer.sizes;
  const SelfAttentionParams& p = layer.params;
  const RotaryTable no_rotation;

  // 1. project
  CHECK(close(layer.query, heads_first(layer.wq.apply(layer.x.data(), s.batch * s.seq_q), s.batch, s.heads, s.seq_q, s.head_dim,
                                       p.query_norm, p.norm_epsilon, p.rotary, p.query_positions)));
  CHECK(close(layer.key, heads_first(layer.wk.apply(layer.memory.data(), s.batch * s.seq_k), s.batch, s.kv_heads, s.seq_k, s.head_dim,
                                     p.key_norm, p.norm_epsilon, p.rotary, p.key_positions)));
  CHECK(close(layer.value, heads_first(layer.wv.apply(layer.memory.data(), s.batch * s.seq_k), s.batch, s.kv_heads, s.seq_k, s.value_dim,
                                       nullptr, 0, no_rotation, {})));

  // 2. to 5. on the traced query, key and value
  AttentionParams a = p.attention;
  a.query = layer.query.data();
  a.key = layer.key.data();
  a.value = layer.value.data();
  const auto strides = [](int heads, int rows, int dim) {
    return Strides{std::ptrdiff_t{heads} * rows * dim, std::ptrdiff_t{rows} * dim, dim};
  };
  a.query_strides = strides(s.heads, s.seq_q, s.head_dim);
  a.key_strides = strides(s.kv_heads, s.seq_k, s.head_dim);
  a.value_strides = strides(s.kv_heads, s.seq_k, s.value_dim);
  const auto stage = [&](MatrixStage which, float scale) {
    AttentionParams one = a;
    one.matrix_stage = which;
    one.scale = scale;
    return reference::attention(one);
  };
  CHECK(close(layer.scores, stage(MatrixStage::scaled_scores, 1.0F).matrix));
  CHECK(close(layer.scaled, stage(MatrixStage::scaled_scores, a.scale).matrix));
  CHECK(close(layer.masked, stage(MatrixStage::masked_scores, a.scale).matrix));
  const auto weights = stage(MatrixStage::weights, a.scale);
  CHECK(close(layer.weights, weights.matrix));

  // 6. the heads side by side
  std::vector<double> context;
  for (int b = 0; b < s.batch; ++b) {
    for (int t = 0; t < s.seq_q; ++t) {
      for (int h = 0; h < s.heads; ++h) {
        const double* row = weights.output.data() + ((b * s.heads + h) * s.seq_q + t) * s.value_dim;
        context.insert(context.end(), row, row + s.value_dim);
      }
    }
  }
  CHECK(close(layer.context, context));

  // 7. project back
  CHECK(close(layer.output, layer.wo.apply(layer.context.data(), s.batch * s.seq_q)));

  // Looking changes nothing.
  const Buffer<float> traced = layer.output;
  layer.params.trace = {};
  REQUIRE(layer.run() == Status::ok);
  CHECK(layer.output == traced);
}

}  // namespace

TEST_CASE("all seven steps agree with the reference, over many sizes", "[self_attention]") {
  Random random("seven steps");
  for (int n = 0; n < 60; ++n) {
    Sizes s;
    s.batch = random.integer(1, 3);
    s.kv_heads = random.integer(1, 3);
    s.heads = s.kv_heads * random.integer(1, 3);
    s.seq_q = random.pick({1, 2, 5, 33, 40});
    s.seq_k = n % 2 == 0 ? s.seq_q : random.pick({1, 3, 33, 130});
    s.x_dim = random.integer(1, 40);
    s.key_x_dim = random.integer(1, 40);
    s.head_dim = random.integer(1, 20);
    s.value_dim = random.integer(1, 20);
    s.output_dim = random.integer(1, 40);
    Layer layer(random, s);
    AttentionParams& a = layer.params.attention;
    a.causal = random.chance(0.5);
    if (random.chance(0.3)) a.softcap = 2.0F;
    if (random.chance(0.3)) a.window_left = 3;
    INFO("layer " << n << ": batch " << s.batch << ", heads " << s.heads << '/' << s.kv_heads << ", queries " << s.seq_q << ", keys "
                  << s.seq_k);
    check_steps(layer);
  }
}

TEST_CASE("many positions: values are packed, traced or not", "[self_attention]") {
  Random random("many positions");
  for (const int positions : {200, 203}) {
    for (const int x_dim : {9, 700}) {
      Sizes s;
      s.seq_q = s.seq_k = positions;
      s.x_dim = s.key_x_dim = x_dim;
      s.head_dim = 12;
      s.value_dim = 13;
      s.output_dim = 21;
      Layer layer(random, s);
      check_steps(layer);
      const Buffer<float> traced = layer.output;
      layer.params.trace = {};
      REQUIRE(layer.run() == Status::ok);
      CHECK(traced == layer.output);
    }
  }
}

TEST_CASE("norm of queries and keys, then rotary positions", "[self_attention][rotary][rms_norm]") {
  Random random("norm and rotary");
  for (int n = 0; n < 12; ++n) {
    Sizes s;
    s.head_dim = 8;
    s.seq_q = s.seq_k = random.pick({1, 5, 35});
    Layer layer(random, s);
    const Buffer<float> query_norm = random_buffer(random, 8);
    const Buffer<float> key_norm = random_buffer(random, 8);
    std::vector<float> cos;
    std::vector<float> sin;
    for (int i = 0; i < 64 * 3; ++i) {
      cos.push_back(static_cast<float>(std::cos(0.1 * i)));
      sin.push_back(static_cast<float>(std::sin(0.1 * i)));
    }
    std::vector<std::int32_t> rows;
    for (int i = 0; i < s.batch * s.seq_q; ++i) rows.push_back(random.integer(0, 63));
    if (n % 3 != 0) {
      layer.params.query_norm = query_norm.data();
      layer.params.key_norm = key_norm.data();
      layer.params.norm_epsilon = 1e-6F;
    }
    if (n % 3 != 1) {
      layer.params.rotary = {cos.data(), sin.data(), 64, 6, n % 2 == 0};
      if (n % 4 != 0) layer.params.query_positions = layer.params.key_positions = {rows.data(), s.seq_q};
    }
    layer.params.attention.causal = true;
    check_steps(layer);
  }
}

TEST_CASE("N27: one head, one position, identity weights", "[self_attention]") {
  Random random("identity layer");
  Layer layer(random, {.batch = 1,
                       .heads = 1,
                       .kv_heads = 1,
                       .seq_q = 1,
                       .seq_k = 1,
                       .x_dim = 2,
                       .key_x_dim = 2,
                       .head_dim = 2,
                       .value_dim = 2,
                       .output_dim = 2});
  for (Weight* w : {&layer.wq, &layer.wk, &layer.wv, &layer.wo}) {
    for (std::size_t i = 0; i < 4; ++i) w->matrix[i] = i % 3 == 0 ? 1.0F : 0.0F;
    REQUIRE(pack_matrix(w->view, nullptr, static_cast<float*>(w->packed.data())) == Status::ok);
  }
  layer.x[0] = layer.memory[0] = 1.0F;
  layer.x[1] = layer.memory[1] = 2.0F;
  REQUIRE(layer.run() == Status::ok);
  CHECK((layer.output[0] == 1.0F && layer.output[1] == 2.0F));
  const float bias[2] = {10, 20};
  REQUIRE(pack_matrix(layer.wo.view, bias, static_cast<float*>(layer.wo.packed.data())) == Status::ok);
  REQUIRE(layer.run() == Status::ok);
  CHECK((layer.output[0] == 11.0F && layer.output[1] == 22.0F));
}

TEST_CASE("law: with a cache, step by step and in pieces equals one causal pass", "[self_attention][kv_cache][laws]") {
  Random random("layer steps");
  for (const KvType type : {KvType::f32, KvType::f16}) {
    Sizes s;
    s.seq_q = s.seq_k = 11;
    Layer whole(random, s);
    std::memcpy(whole.memory.data(), whole.x.data(), whole.x.size() * sizeof(float));
    whole.params.attention.causal = true;
    REQUIRE(whole.run() == Status::ok);

    const int capacity = 16;
    const std::size_t bytes = type == KvType::f16 ? 2 : 4;
    std::vector<unsigned char> keys(product(s.batch, s.kv_heads, capacity, s.head_dim) * bytes, 0xFF);
    std::vector<unsigned char> values(product(s.batch, s.kv_heads, capacity, s.value_dim) * bytes, 0xFF);
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(s.batch), 0);
    int done = 0;
    bool good = true;
    for (const int piece : {1, 3, 1, 5, 1}) {
      Buffer<float> x(product(s.batch, piece, s.x_dim));
      Buffer<float> output(product(s.batch, piece, s.output_dim));
      for (int b = 0; b < s.batch; ++b) {
        std::memcpy(x.data() + b * piece * s.x_dim, whole.x.data() + (b * s.seq_q + done) * s.x_dim,
                    product(piece, s.x_dim) * sizeof(float));
      }
      std::vector<std::int32_t> after;
      for (const std::int32_t n : lengths) after.push_back(n + piece);
      SelfAttentionParams p = whole.params;
      p.x = p.key_x = p.value_x = x.data();
      p.output = output.data();
      p.seq_len_new = piece;
      p.cache = {keys.data(), values.data(), type, s.batch, s.kv_heads, capacity, s.head_dim, s.value_dim, lengths.data(), 0};
      p.attention.seq_len_q = piece;
      p.attention.seq_len_k = done + piece;
      p.attention.query_offset = done;
      p.attention.key_lengths = after.data();
      Scratch scratch(self_attention_scratch_bytes(p), 64);
      REQUIRE(self_attention(p, scratch.data(), scratch.bytes()) == Status::ok);
      CHECK((scratch.intact() && output.intact()));
      for (int b = 0; b < s.batch; ++b) {
        for (int t = 0; t < piece; ++t) {
          for (int o = 0; o < s.output_dim; ++o) {
            const double got = output[static_cast<std::size_t>((b * piece + t) * s.output_dim + o)];
            const double want = whole.output[static_cast<std::size_t>((b * s.seq_q + done + t) * s.output_dim + o)];
            good = good && std::fabs(got - want) <= (type == KvType::f16 ? 4e-3 : kSteps);  // float16 keeps 11 bits
          }
        }
      }
      lengths = after;
      done += piece;
    }
    CHECK(done == s.seq_q);
    CHECK(good);
  }
}

TEST_CASE("an extra key is seen by every query, whatever the masks say", "[self_attention]") {
  // It equals one more projected row behind a mask that lets everybody see it.
  Random random("extra key");
  for (int n = 0; n < 16; ++n) {
    Sizes s;
    s.seq_q = random.pick({1, 6, 34});
    s.seq_k = random.pick({1, 7, 130});
    Layer layer(random, s);
    layer.params.attention.causal = n % 2 == 0;
    std::vector<std::int32_t> lengths = {0, s.seq_k};
    if (n % 4 < 2) layer.params.attention.key_lengths = lengths.data();
    std::vector<float> bias(product(s.seq_q, s.seq_k));
    for (float& b : bias) b = random.chance(0.2) ? -INFINITY : random.real(-1, 1);
    if (n % 8 < 4) {
      layer.params.attention.bias = bias.data();
      layer.params.attention.bias_strides = {0, 0, s.seq_k, 1};
    }
    const Buffer<float> extra_key = random_buffer(random, product(s.kv_heads, s.head_dim));
    const Buffer<float> extra_value = random_buffer(random, product(s.kv_heads, s.value_dim));

    // What is expected: query, key and value of the layer without the extra key, then attention with it by hand.
    layer.trace();
    REQUIRE(layer.run() == Status::ok);
    const int keys = s.seq_k + 1;
    std::vector<float> key;
    std::vector<float> value;
    for (int b = 0; b < s.batch; ++b) {
      for (int g = 0; g < s.kv_heads; ++g) {
        const auto with_extra = [&](std::vector<float>& to, const Buffer<float>& from, const Buffer<float>& extra, int dim) {
          const float* rows = from.data() + (b * s.kv_heads + g) * s.seq_k * dim;
          to.insert(to.end(), rows, rows + s.seq_k * dim);
          to.insert(to.end(), extra.data() + g * dim, extra.data() + (g + 1) * dim);
        };
        with_extra(key, layer.key, extra_key, s.head_dim);
        with_extra(value, layer.value, extra_value, s.value_dim);
      }
    }
    std::vector<std::uint8_t> mask;
    std::vector<float> longer_bias;
    for (int b = 0; b < s.batch; ++b) {
      for (int t = 0; t < s.seq_q; ++t) {
        for (int j = 0; j < s.seq_k; ++j) {
          const bool valid = layer.params.attention.key_lengths == nullptr || j < lengths[static_cast<std::size_t>(b)];
          mask.push_back(valid && (!layer.params.attention.causal || j <= t) ? 1 : 0);
          longer_bias.push_back(layer.params.attention.bias != nullptr ? bias[static_cast<std::size_t>(t * s.seq_k + j)] : 0.0F);
        }
        mask.push_back(1);
        longer_bias.push_back(0.0F);
      }
    }
    AttentionParams a = layer.params.attention;
    a.causal = false;
    a.key_lengths = nullptr;
    a.seq_len_k = keys;
    a.query = layer.query.data();
    a.key = key.data();
    a.value = value.data();
    a.query_strides = {std::ptrdiff_t{s.heads} * s.seq_q * s.head_dim, std::ptrdiff_t{s.seq_q} * s.head_dim, s.head_dim};
    a.key_strides = {std::ptrdiff_t{s.kv_heads} * keys * s.head_dim, std::ptrdiff_t{keys} * s.head_dim, s.head_dim};
    a.value_strides = {std::ptrdiff_t{s.kv_heads} * keys * s.value_dim, std::ptrdiff_t{keys} * s.value_dim, s.value_dim};
    a.mask = mask.data();
    a.mask_strides = {std::ptrdiff_t{s.seq_q} * keys, 0, keys, 1};
    a.bias = longer_bias.data();
    a.bias_strides = a.mask_strides;
    const auto want = reference::attention(a);

    layer.params.trace = {};
    layer.params.trace.context = layer.context.data();
    layer.params.extra_key = extra_key.data();
    layer.params.extra_value = extra_value.data();
    layer.params.attention.seq_len_k = keys;
    REQUIRE(layer.run() == Status::ok);
    bool good = true;
    for (int b = 0; b < s.batch; ++b) {
      for (int t = 0; t < s.seq_q; ++t) {
        for (int h = 0; h < s.heads; ++h) {
          for (int i = 0; i < s.value_dim; ++i) {
            const double got = layer.context[product(1, ((b * s.seq_q + t) * s.heads + h) * s.value_dim + i)];
            good = good && std::fabs(got - want.output[product(1, ((b * s.heads + h) * s.seq_q + t) * s.value_dim + i)]) <= kSteps;
          }
        }
      }
    }
    INFO("case " << n);
    CHECK(good);
  }
}

TEST_CASE("layers that are refused write nothing", "[self_attention][status]") {
  Random random("refused layer");
  Layer layer(random, {});
  const Buffer<float> before = layer.output;
  Scratch scratch(1 << 20, 64);
  const auto run = [&](auto spoil) {
    SelfAttentionParams p = layer.params;
    spoil(p);
    return self_attention(p, scratch.data(), scratch.bytes());
  };
  CHECK(run([](SelfAttentionParams& p) { p.x = nullptr; }) == Status::missing_pointer);
  CHECK(run([](SelfAttentionParams& p) { p.key_x = nullptr; }) == Status::missing_pointer);
  CHECK(run([](SelfAttentionParams& p) { p.packed_output = nullptr; }) == Status::missing_pointer);
  CHECK(run([](SelfAttentionParams& p) { p.output = nullptr; }) == Status::missing_pointer);
  CHECK(run([](SelfAttentionParams& p) { p.x_dim = 0; }) == Status::invalid_shape);
  CHECK(run([](SelfAttentionParams& p) { p.attention.seq_len_k = 4; }) == Status::invalid_shape);
  CHECK(run([](SelfAttentionParams& p) { p.attention.num_kv_heads = 3; }) == Status::invalid_shape);
  CHECK(run([](SelfAttentionParams& p) { p.attention.scale = NAN; }) == Status::invalid_option);
  CHECK(run([](SelfAttentionParams& p) { p.norm_epsilon = -1.0F; }) == Status::invalid_option);
  static const std::int32_t lengths[] = {1, 1};
  CHECK(run([](SelfAttentionParams& p) { p.new_lengths = lengths; }) == Status::invalid_option);
  static const float number[1] = {0};
  CHECK(run([](SelfAttentionParams& p) { p.extra_key = number; }) == Status::missing_pointer);
  const std::size_t bytes = self_attention_scratch_bytes(layer.params);
  CHECK(self_attention(layer.params, scratch.data(), bytes - 1) == Status::scratch_too_small);
  CHECK(layer.output == before);
  CHECK(self_attention(layer.params, scratch.data(), bytes) == Status::ok);
}
