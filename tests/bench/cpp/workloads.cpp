// One workload of workloads.json on this machine: the ratio to it says what WebAssembly costs. Verified first, on the last rows of every head.

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "attn/attention.h"
#include "attn/projection.h"
#include "attn/self_attention.h"
#include "reference/attention_reference.h"
#include "reference/projection_reference.h"
#include "timing.h"

namespace attn::bench {
namespace {

struct Workload {
  int heads, kv_heads, seq_q, seq_k, head_dim, embed_dim, causal, left, right;
};

/// Rows of each head that are compared.
constexpr int kVerifiedRows = 2;

Strides dense(int heads, int rows, int dim) {
  const std::ptrdiff_t row = dim;
  return {heads * rows * row, rows * row, row};
}

AttentionParams params_of(const Workload& w) {
  AttentionParams p;
  p.batch_size = 1;
  p.num_heads = w.heads;
  p.num_kv_heads = w.kv_heads;
  p.seq_len_q = w.seq_q;
  p.seq_len_k = w.seq_k;
  p.head_dim = p.value_dim = w.head_dim;
  p.scale = 1.0F / std::sqrt(static_cast<float>(w.head_dim));
  p.causal = w.causal != 0;
  p.window_left = w.left;
  p.window_right = w.right;
  p.query_offset = w.seq_k - w.seq_q;
  p.query_strides = p.output_strides = dense(w.heads, w.seq_q, w.head_dim);
  p.key_strides = p.value_strides = dense(w.kv_heads, w.seq_k, w.head_dim);
  return p;
}

std::size_t size(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

/// Largest difference to the reference in the last rows of each head.
double error_of(AttentionParams p, const float* output) {
  const int first = std::max(0, p.seq_len_q - kVerifiedRows);
  p.query += first * p.query_strides.row;
  output += first * p.output_strides.row;
  p.query_offset += first;
  p.seq_len_q -= first;
  const auto expected = reference::attention(p).output;
  double error = 0;
  std::size_t i = 0;
  for (int h = 0; h < p.num_heads; ++h) {
    for (int t = 0; t < p.seq_len_q; ++t) {
      for (int d = 0; d < p.value_dim; ++d, ++i) {
        error = std::max(error, std::abs(expected[i] - double{output[h * p.output_strides.head + t * p.output_strides.row + d]}));
      }
    }
  }
  return error;
}

int print(const std::vector<double>& times, double error) {
  std::printf("{\"error\":%.3e,\"times\":[", error);
  for (std::size_t i = 0; i < times.size(); ++i) std::printf("%s%.6f", i == 0 ? "" : ",", times[i]);
  std::printf("]}\n");
  return 0;
}

int refuse(Status status) {
  std::fprintf(stderr, "refused with status %d\n", static_cast<int>(status));
  return 1;
}

int attention(const Workload& w, double budget_ms, std::size_t most) {
  const Floats query(size(w.heads, w.seq_q, w.head_dim), 1);
  const Floats key(size(w.kv_heads, w.seq_k, w.head_dim), 2);
  const Floats value(size(w.kv_heads, w.seq_k, w.head_dim), 3);
  Floats output(size(w.heads, w.seq_q, w.head_dim));
  AttentionParams p = params_of(w);
  p.query = query.get();
  p.key = key.get();
  p.value = value.get();
  p.output = output.get();
  const std::size_t bytes = attention_scratch_bytes(p);
  Floats scratch(bytes / sizeof(float) + 1);
  const Status status = attention_forward(p, scratch.get(), bytes);
  if (status != Status::ok) return refuse(status);
  const double error = error_of(p, output.get());
  return print(time_each(budget_ms, most, [&] { static_cast<void>(attention_forward(p, scratch.get(), bytes)); }), error);
}

/// A projection with its packed form.
struct Projection {
  Projection(int groups, int group_dim, int in_dim, std::uint32_t seed)
      : weight(size(groups, group_dim, in_dim), seed, 1.0F / std::sqrt(static_cast<float>(in_dim))),
        bias(size(groups, group_dim), seed + 1, 0.1F),
        packed(packed_elements(groups, group_dim, in_dim)),
        view{weight.get(), WeightType::f32, groups, group_dim, in_dim, in_dim, 1},
        status(pack_matrix(view, bias.get(), packed.get())) {}
  Floats weight, bias, packed;
  MatrixView view;
  Status status;
};

/// The last row, by the reference of each step: projections, attention, projection.
double layer_error(const Workload& w, const float* x, const Projection& q, const Projection& k, const Projection& v, const Projection& o,
                   const float* output) {
  const auto heads_first = [&](const Projection& projection) {
    const auto rows = reference::project(x, w.seq_q, projection.view, projection.bias.get());
    Floats y(rows.size());
    // project gives [rows, groups * group_dim]
    for (int t = 0; t < w.seq_q; ++t) {
      for (int h = 0; h < w.heads; ++h) {
        for (int d = 0; d < w.head_dim; ++d) {
          y[size(h * w.seq_q + t, w.head_dim) + static_cast<std::size_t>(d)] =
              static_cast<float>(rows[size(t * w.heads + h, w.head_dim) + static_cast<std::size_t>(d)]);
        }
      }
    }
    return y;
  };
  const Floats query = heads_first(q);
  const Floats key = heads_first(k);
  const Floats value = heads_first(v);
  AttentionParams p = params_of(w);
  p.query = query.get() + (w.seq_q - 1) * w.head_dim;
  p.key = key.get();
  p.value = value.get();
  p.seq_len_q = 1;
  p.query_offset = w.seq_q - 1;
  const auto context = reference::attention(p).output;
  const std::vector<float> row(context.begin(), context.end());
  const auto expected = reference::project(row.data(), 1, o.view, o.bias.get());
  double error = 0;
  for (int i = 0; i < w.embed_dim; ++i) {
    error = std::max(error, std::abs(expected[static_cast<std::size_t>(i)] - double{output[(w.seq_q - 1) * w.embed_dim + i]}));
  }
  return error;
}

int layer(const Workload& w, double budget_ms, std::size_t most) {
  const Floats x(size(w.seq_q, w.embed_dim), 1);
  const Projection q(w.heads, w.head_dim, w.embed_dim, 2);
  const Projection k(w.heads, w.head_dim, w.embed_dim, 4);
  const Projection v(w.heads, w.head_dim, w.embed_dim, 6);
  const Projection o(1, w.embed_dim, w.heads * w.head_dim, 8);
  for (const Projection* projection : {&q, &k, &v, &o}) {
    if (projection->status != Status::ok) return refuse(projection->status);
  }
  Floats output(size(w.seq_q, w.embed_dim));
  SelfAttentionParams p;
  p.x = p.key_x = p.value_x = x.get();
  p.x_dim = p.key_x_dim = p.value_x_dim = p.output_dim = w.embed_dim;
  p.seq_len_new = w.seq_q;
  p.packed_query = q.packed.get();
  p.packed_key = k.packed.get();
  p.packed_value = v.packed.get();
  p.packed_output = o.packed.get();
  p.output = output.get();
  p.attention = params_of(w);
  const std::size_t bytes = self_attention_scratch_bytes(p);
  Floats scratch(bytes / sizeof(float) + 1);
  const Status status = self_attention(p, scratch.get(), bytes);
  if (status != Status::ok) return refuse(status);
  const double error = layer_error(w, x.get(), q, k, v, o, output.get());
  return print(time_each(budget_ms, most, [&] { static_cast<void>(self_attention(p, scratch.get(), bytes)); }), error);
}

}  // namespace

int run_workload(const char* const* words, int count) {
  if (count != 11) {
    std::fprintf(stderr, "expected 11 numbers after 'workload', got %d\n", count);
    return 2;
  }
  int n[9];
  for (int i = 0; i < 9; ++i) n[i] = std::atoi(words[i]);
  const Workload w{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]};
  const double budget_ms = std::atof(words[9]);
  const auto most = static_cast<std::size_t>(std::atoi(words[10]));
  return w.embed_dim > 0 ? layer(w, budget_ms, most) : attention(w, budget_ms, most);
}

}  // namespace attn::bench
