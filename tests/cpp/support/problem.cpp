#include "support/problem.h"

#include <algorithm>
#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <sstream>

#include "support/half.h"
#include "support/scratch.h"

namespace attn::test {
namespace {

template <typename T>
void copy_rows(std::initializer_list<float> from, Buffer<T>& to) {
  REQUIRE(from.size() == to.size());
  std::copy(from.begin(), from.end(), to.begin());
}

/// Extent 1 repeats, which is a stride of 0.
ScoreStrides broadcast_strides(int batch, int heads, int queries, int keys) {
  return {batch == 1 ? 0 : std::ptrdiff_t{heads} * queries * keys, heads == 1 ? 0 : std::ptrdiff_t{queries} * keys,
          queries == 1 ? 0 : std::ptrdiff_t{keys}, keys == 1 ? 0 : 1};
}

std::size_t product(int a, int b, int c, int d) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c) * static_cast<std::size_t>(d);
}

}  // namespace

Placement Placement::of(Layout layout, int batch, int heads, int rows, int dim) {
  Placement p;
  if (layout == Layout::bshd) {
    p.strides = {std::ptrdiff_t{rows} * heads * dim, dim, std::ptrdiff_t{heads} * dim};
    p.elements = product(batch, heads, rows, dim);
  } else {
    const int row_gap = layout == Layout::gaps ? 3 : 0;
    const int head_gap = layout == Layout::gaps ? 5 : 0;
    const int batch_gap = layout == Layout::gaps ? 7 : 0;
    p.strides.row = dim + row_gap;
    p.strides.head = rows * p.strides.row + head_gap;
    p.strides.batch = heads * p.strides.head + batch_gap;
    // Ends with the last element in use: a kernel that reads a whole last row reads too far.
    const std::ptrdiff_t last = (batch - 1) * p.strides.batch + (heads - 1) * p.strides.head + (rows - 1) * p.strides.row + dim;
    p.elements = product(batch, heads, rows, dim) == 0 ? 0 : static_cast<std::size_t>(last);
  }
  return p;
}

Problem::Problem(const Shape& s, Layout layout) : shape(s) {
  const auto place = [&](int heads, int rows, int dim, Strides& strides) {
    const Placement p = Placement::of(layout, s.batch, heads, rows, dim);
    strides = p.strides;
    return Buffer<float>(p.elements);
  };
  query = place(s.heads, s.seq_q, s.head_dim, options.query_strides);
  key = place(s.kv_heads, s.seq_k, s.head_dim, options.key_strides);
  value = place(s.kv_heads, s.seq_k, s.value_dim, options.value_strides);
  output = place(s.heads, s.seq_q, s.value_dim, options.output_strides);
  lse = Buffer<float>(product(s.batch, s.heads, s.seq_q, 1));
  // Only elements become 0; gaps stay 0xFF, so that a kernel that reads them produces NaN.
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      for (int t = 0; t < s.seq_q; ++t) {
        for (int i = 0; i < s.head_dim; ++i) q(b, h, t, i) = 0.0F;
      }
    }
    for (int g = 0; g < s.kv_heads; ++g) {
      for (int j = 0; j < s.seq_k; ++j) {
        for (int i = 0; i < s.head_dim; ++i) k(b, g, j, i) = 0.0F;
        for (int i = 0; i < s.value_dim; ++i) v(b, g, j, i) = 0.0F;
      }
    }
  }
  options.batch_size = s.batch;
  options.num_heads = s.heads;
  options.num_kv_heads = s.kv_heads;
  options.seq_len_q = s.seq_q;
  options.seq_len_k = s.seq_k;
  options.head_dim = s.head_dim;
  options.value_dim = s.value_dim;
}

float& Problem::matrix_at(int b, int n, int t, int s) {
  return matrix[static_cast<std::size_t>(((b * num_matrices() + n) * shape.seq_q + t) * shape.seq_k + s)];
}

double Problem::row_sum(int b, int n, int t) {
  double sum = 0;
  for (int s = 0; s < shape.seq_k; ++s) sum += double{matrix_at(b, n, t, s)};
  return sum;
}

void Problem::fill_random(Random& random, double amplitude) {
  for (int b = 0; b < shape.batch; ++b) {
    for (int h = 0; h < shape.heads; ++h) {
      for (int t = 0; t < shape.seq_q; ++t) {
        for (int i = 0; i < shape.head_dim; ++i) q(b, h, t, i) = random.real(-amplitude, amplitude);
      }
    }
    for (int g = 0; g < shape.kv_heads; ++g) {
      for (int s = 0; s < shape.seq_k; ++s) {
        for (int i = 0; i < shape.head_dim; ++i) k(b, g, s, i) = random.real(-amplitude, amplitude);
        for (int i = 0; i < shape.value_dim; ++i) v(b, g, s, i) = random.real(-1, 1);
      }
    }
  }
}

void Problem::set_query(std::initializer_list<float> rows) { copy_rows(rows, query); }
void Problem::set_key(std::initializer_list<float> rows) { copy_rows(rows, key); }
void Problem::set_value(std::initializer_list<float> rows) { copy_rows(rows, value); }

void Problem::use_f16() {
  options.kv_type = KvType::f16;
  key_f16 = Buffer<std::uint16_t>(key.size());
  value_f16 = Buffer<std::uint16_t>(value.size());
  for (std::size_t i = 0; i < key.size(); ++i) key_f16[i] = to_half(key[i]);
  for (std::size_t i = 0; i < value.size(); ++i) value_f16[i] = to_half(value[i]);
}

void Problem::add_mask(int batch, int heads, int queries, int keys, std::uint8_t fill) {
  mask = Buffer<std::uint8_t>(product(batch, heads, queries, keys));
  std::fill(mask.begin(), mask.end(), fill);
  options.mask_strides = broadcast_strides(batch, heads, queries, keys);
}

void Problem::add_bias(int batch, int heads, int queries, int keys, float fill) {
  bias = Buffer<float>(product(batch, heads, queries, keys));
  std::fill(bias.begin(), bias.end(), fill);
  options.bias_strides = broadcast_strides(batch, heads, queries, keys);
}

void Problem::want_matrix(MatrixStage stage, std::initializer_list<int> heads, bool mean) {
  options.matrix_stage = stage;
  options.matrix_mean = mean;
  matrix_heads = Buffer<std::int32_t>(heads.size());
  std::copy(heads.begin(), heads.end(), matrix_heads.begin());
  options.num_matrix_heads = static_cast<std::int32_t>(heads.size());
  matrix = Buffer<float>(product(shape.batch, num_matrices(), shape.seq_q, shape.seq_k));
}

int Problem::num_matrices() const {
  if (options.matrix_stage == MatrixStage::none) return 0;
  if (options.matrix_mean) return 1;
  return matrix_heads.empty() ? shape.heads : static_cast<int>(matrix_heads.size());
}

AttentionParams Problem::params() {
  AttentionParams p = options;
  const bool f16 = p.kv_type == KvType::f16;
  p.query = query.data();
  p.key = f16 ? static_cast<const void*>(key_f16.data()) : key.data();
  p.value = f16 ? static_cast<const void*>(value_f16.data()) : value.data();
  p.output = want_output ? output.data() : nullptr;
  p.lse = want_lse ? lse.data() : nullptr;
  p.mask = mask.data();
  p.bias = bias.data();
  p.alibi_slopes = alibi_slopes.data();
  p.sinks = sinks.data();
  p.query_offsets = query_offsets.data();
  p.key_lengths = key_lengths.data();
  p.matrix = matrix.data();
  p.matrix_heads = matrix_heads.data();
  return p;
}

Status Problem::try_run() {
  output.erase();
  lse.erase();
  matrix.erase();
  const Problem before = *this;
  const AttentionParams p = params();
  Scratch scratch(attention_scratch_bytes(p));
  const Status status = attention_forward(p, scratch.data(), scratch.bytes());

  INFO(describe());
  CHECK(scratch.intact());
  CHECK((output.intact() && lse.intact() && matrix.intact()));
  CHECK((query == before.query && key == before.key && value == before.value));
  CHECK((key_f16 == before.key_f16 && value_f16 == before.value_f16));
  CHECK((mask == before.mask && bias == before.bias && alibi_slopes == before.alibi_slopes && sinks == before.sinks));
  CHECK((query_offsets == before.query_offsets && key_lengths == before.key_lengths && matrix_heads == before.matrix_heads));
  if (status != Status::ok || !want_output) CHECK(output == before.output);
  if (status != Status::ok || !want_lse) CHECK(lse == before.lse);
  if (status != Status::ok) CHECK(matrix == before.matrix);
  return status;
}

void Problem::run() {
  const Status status = try_run();
  INFO(describe());
  REQUIRE(status == Status::ok);

  // Exactly the elements were written: all of them, and no gap between them.
  std::vector<bool> element(output.size());
  bool all_written = true;
  for (int b = 0; b < shape.batch; ++b) {
    for (int h = 0; h < shape.heads; ++h) {
      for (int t = 0; t < shape.seq_q; ++t) {
        for (int i = 0; i < shape.value_dim; ++i) element[at(options.output_strides, b, h, t, i)] = true;
      }
    }
  }
  if (want_output) {
    for (std::size_t i = 0; i < output.size(); ++i) all_written = all_written && output.written(i) == element[i];
  }
  for (std::size_t i = 0; want_lse && i < lse.size(); ++i) all_written = all_written && lse.written(i);
  for (std::size_t i = 0; i < matrix.size(); ++i) all_written = all_written && matrix.written(i);
  CHECK(all_written);
}

std::string Problem::describe() const {
  std::ostringstream text;
  text << "seed " << base_seed() << ": batch " << shape.batch << ", heads " << shape.heads << '/' << shape.kv_heads << ", queries "
       << shape.seq_q << ", keys " << shape.seq_k << ", head_dim " << shape.head_dim << ", value_dim " << shape.value_dim << ", strides q "
       << options.query_strides.batch << ' ' << options.query_strides.head << ' ' << options.query_strides.row << ", scale "
       << options.scale;
  if (options.softcap != 0) text << ", softcap " << options.softcap;
  if (options.causal) text << ", causal";
  if (options.window_left >= 0 || options.window_right >= 0) text << ", window " << options.window_left << ' ' << options.window_right;
  if (options.query_offset != 0) text << ", offset " << options.query_offset;
  const auto list = [&](const char* name, const Buffer<std::int32_t>& values) {
    if (values.empty()) return;
    text << ", " << name;
    for (std::size_t i = 0; i < values.size(); ++i) text << ' ' << values[i];
  };
  list("offsets", query_offsets);
  list("lengths", key_lengths);
  const auto strides = [&](const char* name, bool there, const ScoreStrides& s) {
    if (there) text << ", " << name << ' ' << s.batch << ' ' << s.head << ' ' << s.query << ' ' << s.key;
  };
  strides("mask", !mask.empty(), options.mask_strides);
  strides("bias", !bias.empty(), options.bias_strides);
  if (!alibi_slopes.empty()) text << ", alibi";
  if (!sinks.empty()) text << ", sinks";
  if (options.kv_type == KvType::f16) text << ", f16";
  if (!want_output) text << ", no output";
  if (options.matrix_stage != MatrixStage::none) text << ", matrix stage " << static_cast<int>(options.matrix_stage);
  list("matrix heads", matrix_heads);
  if (options.matrix_mean) text << ", mean";
  return text.str();
}

std::vector<float> dense_output(Problem& problem) {
  std::vector<float> dense;
  const Shape& s = problem.shape;
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      for (int t = 0; t < s.seq_q; ++t) {
        for (int i = 0; i < s.value_dim; ++i) dense.push_back(problem.out(b, h, t, i));
      }
    }
  }
  return dense;
}

}  // namespace attn::test
