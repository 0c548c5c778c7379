#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "attn/attention.h"
#include "support/buffer.h"
#include "support/random.h"

namespace attn::test {

/// bhsd: heads first. bshd: positions first. gaps: heads first with unused elements after every row, head and batch row.
enum class Layout { bhsd, bshd, gaps };

struct Shape {
  int batch = 1, heads = 1, kv_heads = 1, seq_q = 1, seq_k = 1, head_dim = 1, value_dim = 1;
};

/// Distances and total size of a [batch, heads, rows, dim] tensor.
struct Placement {
  Strides strides;
  std::size_t elements = 0;
  static Placement of(Layout layout, int batch, int heads, int rows, int dim);
};

/// One call of attention_forward with the memory it needs. Copying it makes an independent second call, which is how laws are written.
class Problem {
 public:
  explicit Problem(const Shape& shape, Layout layout = Layout::bhsd);

  const Shape shape;
  /// Options are set here. Pointers and strides are filled in from the buffers below by `params()`.
  AttentionParams options;

  Buffer<float> query, key, value, output;
  Buffer<std::uint16_t> key_f16, value_f16;
  Buffer<std::uint8_t> mask;
  Buffer<float> bias, alibi_slopes, sinks;
  Buffer<std::int32_t> query_offsets, key_lengths, matrix_heads;
  Buffer<float> lse, matrix;
  bool want_output = true;
  bool want_lse = true;

  // Elements by index, whatever the layout. g counts key/value heads.
  float& q(int b, int h, int t, int i) { return query[at(options.query_strides, b, h, t, i)]; }
  float& k(int b, int g, int s, int i) { return key[at(options.key_strides, b, g, s, i)]; }
  float& v(int b, int g, int s, int i) { return value[at(options.value_strides, b, g, s, i)]; }
  float& out(int b, int h, int t, int i) { return output[at(options.output_strides, b, h, t, i)]; }
  float& lse_at(int b, int h, int t) { return lse[static_cast<std::size_t>((b * shape.heads + h) * shape.seq_q + t)]; }
  /// n counts the matrices, which are heads when all are wanted
  float& matrix_at(int b, int n, int t, int s);
  /// sum of one row of the matrix
  double row_sum(int b, int n, int t);

  // Filling. All values start as 0, so that q = 0 (equal scores) needs no line.
  void fill_random(Random& random, double amplitude = 1.0);
  void set_query(std::initializer_list<float> rows);
  void set_key(std::initializer_list<float> rows);
  void set_value(std::initializer_list<float> rows);
  /// rounds key and value to half precision and hands these over
  void use_f16();

  /// A mask or bias of the given extents, each either 1 (repeats) or the full size.
  void add_mask(int batch, int heads, int queries, int keys, std::uint8_t value = 1);
  void add_bias(int batch, int heads, int queries, int keys, float value = 0.0F);
  std::uint8_t& mask_at(int b, int h, int t, int s) { return mask[at(options.mask_strides, b, h, t, s)]; }
  float& bias_at(int b, int h, int t, int s) { return bias[at(options.bias_strides, b, h, t, s)]; }

  void want_matrix(MatrixStage stage, std::initializer_list<int> heads = {}, bool mean = false);
  [[nodiscard]] int num_matrices() const;

  /// the parameters with every pointer set
  [[nodiscard]] AttentionParams params();

  /// Runs and checks what holds for every call: ok, inputs unchanged, all results written, nothing written beside them.
  void run();
  /// Runs without demanding success; the rest as above.
  Status try_run();

  /// shape and options on one line, for failure messages
  [[nodiscard]] std::string describe() const;

 private:
  template <typename S>
  static std::size_t at(const S& strides, int b, int h, int row, int last) {
    if constexpr (requires { strides.key; }) {
      return static_cast<std::size_t>(b * strides.batch + h * strides.head + row * strides.query + last * strides.key);
    } else {
      return static_cast<std::size_t>(b * strides.batch + h * strides.head + row * strides.row + last);
    }
  }
};

/// Dense outputs of a problem that has run, [batch, heads, seq_q, value_dim], whatever its layout.
[[nodiscard]] std::vector<float> dense_output(Problem& problem);

}  // namespace attn::test
