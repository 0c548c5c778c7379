#include "attn/self_attention.h"

#include <algorithm>
#include <cmath>

#include "attn/parallel.h"
#include "attn/projection.h"
#include "attn/rms_norm.h"
#include "core/attention_plan.h"
#include "core/extra_key.h"
#include "core/sizes.h"

namespace attn {
namespace {

/// Heads first, dense: [batch, heads, rows, dim].
Strides heads_first(std::int32_t heads, std::int32_t rows, std::int32_t dim) {
  const std::ptrdiff_t head = static_cast<std::ptrdiff_t>(rows) * dim;
  return {heads * head, head, dim};
}

/// Positions first, dense: [batch, rows, heads, dim], so that the heads of a position lie side by side.
Strides positions_first(std::int32_t heads, std::int32_t rows, std::int32_t dim) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(heads) * dim;
  return {rows * row, dim, row};
}

/// Memory of one call: parts of the scratch area, or what the caller wants to see.
struct Areas {
  float* query = nullptr;
  float* key = nullptr;
  float* value = nullptr;
  float* context = nullptr;
  std::uint8_t* extra_mask = nullptr;
  float* extra_bias = nullptr;
  void* attention = nullptr;
  std::size_t attention_bytes = 0;
  std::size_t total_bytes = 0;
};

/// Hands out the scratch area piece by piece; with base null it only counts.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<std::byte*>(base)) {}

  void* take(std::size_t bytes) {
    std::byte* const piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + 63) / 64 * 64;
    return piece;
  }
  float* take_floats(std::size_t count) { return static_cast<float*>(take(count * sizeof(float))); }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

std::size_t product(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c) * static_cast<std::size_t>(d);
}

bool has_cache(const SelfAttentionParams& p) { return p.cache.key != nullptr; }

/// Rows of the keys and values that this call projects; the extra key follows them.
std::int32_t projected_rows(const SelfAttentionParams& p) { return p.seq_len_new + (p.extra_key != nullptr ? 1 : 0); }

/// Row `row` of the first head of a cache.
const void* row_of(const void* data, KvType type, const Strides& strides, std::int32_t row) {
  return static_cast<const std::byte*>(data) + row * strides.row * (type == KvType::f16 ? 2 : 4);
}

/// The attention of the call on the given areas.
AttentionParams attention_of(const SelfAttentionParams& p, const Areas& areas) {
  AttentionParams a = p.attention;
  a.query = areas.query;
  a.query_strides = heads_first(a.num_heads, a.seq_len_q, a.head_dim);
  a.output = areas.context;
  a.output_strides = positions_first(a.num_heads, a.seq_len_q, a.value_dim);
  if (has_cache(p)) {
    a.key_strides = key_strides(p.cache);
    a.value_strides = value_strides(p.cache);
    a.kv_type = p.cache.type;
    a.key = row_of(p.cache.key, a.kv_type, a.key_strides, p.cache.start);
    a.value = row_of(p.cache.value, a.kv_type, a.value_strides, p.cache.start);
  } else {
    a.key = areas.key;
    a.value = areas.value;
    a.key_strides = heads_first(a.num_kv_heads, projected_rows(p), a.head_dim);
    a.value_strides = heads_first(a.num_kv_heads, projected_rows(p), a.value_dim);
    a.kv_type = KvType::f32;
  }
  return a;
}

/// The same for one of the matrices of the trace: nothing but the matrix is computed.
AttentionParams matrix_of(AttentionParams a, MatrixStage stage, float* matrix) {
  a.output = nullptr;
  a.lse = nullptr;
  a.matrix = matrix;
  a.matrix_stage = stage;
  a.matrix_heads = nullptr;
  a.num_matrix_heads = 0;
  a.matrix_mean = false;
  return a;
}

/// Cuts the scratch area, or counts its bytes when `scratch` is null.
Areas make_areas(const SelfAttentionParams& p, void* scratch) {
  const AttentionParams& a = p.attention;
  const SelfAttentionTrace& trace = p.trace;
  Carver carver(scratch);
  Areas areas;
  areas.query = trace.query != nullptr ? trace.query : carver.take_floats(product(a.batch_size, a.num_heads, a.seq_len_q, a.head_dim));
  areas.key = trace.key != nullptr ? trace.key : carver.take_floats(product(a.batch_size, a.num_kv_heads, projected_rows(p), a.head_dim));
  areas.value =
      trace.value != nullptr ? trace.value : carver.take_floats(product(a.batch_size, a.num_kv_heads, projected_rows(p), a.value_dim));
  areas.context =
      trace.context != nullptr ? trace.context : carver.take_floats(product(a.batch_size, a.num_heads, a.seq_len_q, a.value_dim));
  if (p.extra_key != nullptr) {
    const core::ExtraKeyPlan plan = core::plan_extra_key(a);
    if (plan.mask_bytes > 0) areas.extra_mask = static_cast<std::uint8_t*>(carver.take(plan.mask_bytes));
    if (plan.bias_floats > 0) areas.extra_bias = carver.take_floats(plan.bias_floats);
  }
  AttentionParams widest = attention_of(p, areas);
  areas.attention_bytes = core::make_plan(widest, thread_count()).total_bytes;
  if (trace.weights != nullptr) {
    widest = matrix_of(widest, MatrixStage::weights, trace.weights);
    areas.attention_bytes = std::max(areas.attention_bytes, core::make_plan(widest, thread_count()).total_bytes);
  }
  areas.attention = carver.take(areas.attention_bytes);
  areas.total_bytes = carver.used();
  return areas;
}

Status check_cache_call(const SelfAttentionParams& p) {
  const AttentionParams& a = p.attention;
  const SelfAttentionTrace& trace = p.trace;
  if (p.cache.batch_size != a.batch_size || p.cache.num_kv_heads != a.num_kv_heads || p.cache.head_dim != a.head_dim ||
      p.cache.value_dim != a.value_dim || p.cache.start < 0 || p.cache.start > p.cache.capacity ||
      a.seq_len_k > p.cache.capacity - p.cache.start) {
    return Status::invalid_shape;
  }
  if (p.extra_key != nullptr || trace.query != nullptr || trace.key != nullptr || trace.value != nullptr || trace.scores != nullptr ||
      trace.scaled_scores != nullptr || trace.masked_scores != nullptr || trace.weights != nullptr || trace.context != nullptr) {
    return Status::invalid_option;
  }
  if (a.batch_size > 0 && p.cache.lengths == nullptr) return Status::missing_pointer;
  for (std::int32_t b = 0; b < a.batch_size; ++b) {
    const std::int32_t count = p.new_lengths != nullptr ? p.new_lengths[b] : p.seq_len_new;
    const std::int32_t room = p.cache.capacity - p.cache.start - p.cache.lengths[b];
    if (p.cache.lengths[b] < 0 || room < 0 || count < 0 || count > p.seq_len_new || count > room) {
      return Status::invalid_option;
    }
  }
  return Status::ok;
}

/// Everything that SelfAttentionParams promises; what the parts check themselves is asked of them here, before anything is written.
Status validate(const SelfAttentionParams& p) {
  const AttentionParams& a = p.attention;
  static float somewhere[1];  // stands for areas that do not exist yet
  Areas areas;
  areas.query = areas.key = areas.value = areas.context = somewhere;
  const Status status = core::validate(attention_of(p, areas));
  if (status != Status::ok) return status;
  if (a.head_dim == 0 || a.value_dim == 0 || a.num_heads == 0 || p.seq_len_new < 0) return Status::invalid_shape;
  if (!core::addressable({a.batch_size, a.seq_len_q, std::max(p.x_dim, p.output_dim)})) return Status::invalid_shape;
  if (!core::addressable({a.batch_size, p.seq_len_new, std::max(p.key_x_dim, p.value_x_dim)})) return Status::invalid_shape;
  if (!core::addressable({a.batch_size, a.num_kv_heads, projected_rows(p), std::max(a.head_dim, a.value_dim)}))
    return Status::invalid_shape;
  if (!core::addressable({a.num_heads, a.value_dim})) return Status::invalid_shape;
  if (packed_elements(a.num_heads, a.head_dim, p.x_dim) == 0) return Status::invalid_shape;
  if (packed_elements(1, p.output_dim, a.num_heads * a.value_dim) == 0) return Status::invalid_shape;
  const bool has_queries = a.batch_size > 0 && a.seq_len_q > 0;
  if (has_queries && (p.x == nullptr || p.packed_query == nullptr || p.packed_output == nullptr || p.output == nullptr)) {
    return Status::missing_pointer;
  }
  if (p.seq_len_new > 0) {
    if (packed_elements(a.num_kv_heads, a.head_dim, p.key_x_dim) == 0) return Status::invalid_shape;
    if (packed_elements(a.num_kv_heads, a.value_dim, p.value_x_dim) == 0) return Status::invalid_shape;
    if (a.batch_size > 0 && (p.key_x == nullptr || p.value_x == nullptr || p.packed_key == nullptr || p.packed_value == nullptr)) {
      return Status::missing_pointer;
    }
  }
  if ((p.extra_key == nullptr) != (p.extra_value == nullptr)) return Status::missing_pointer;
  if (p.extra_key != nullptr && a.alibi_slopes != nullptr) return Status::invalid_option;
  if (!(p.norm_epsilon >= 0.0F)) return Status::invalid_option;
  if (p.rotary.cos != nullptr) {
    Status rotary = check_rotary(p.rotary, a.head_dim);
    if (rotary == Status::ok) rotary = check_positions(p.rotary, p.query_positions, a.batch_size, a.seq_len_q);
    if (rotary == Status::ok) rotary = check_positions(p.rotary, p.key_positions, a.batch_size, p.seq_len_new);
    if (rotary != Status::ok) return rotary;
  }
  if (has_cache(p)) return check_cache_call(p);
  if (p.new_lengths != nullptr) return Status::invalid_option;
  return a.seq_len_k == projected_rows(p) ? Status::ok : Status::invalid_shape;
}

/// y = x · Wᵀ + b for `rows` rows of each batch row. Single rows are put together, so that the weights are read once for the whole batch.
Status project_rows(const float* x, std::int32_t batch_size, std::int32_t rows, std::int32_t in_dim, const float* packed,
                    std::int32_t num_groups, std::int32_t group_dim, float* y, const Strides& y_strides) {
  ProjectionParams p;
  p.x = x;
  p.x_row_stride = in_dim;
  p.x_batch_stride = static_cast<std::ptrdiff_t>(rows) * in_dim;
  p.packed = packed;
  p.y = y;
  p.y_batch_stride = y_strides.batch;
  p.y_group_stride = y_strides.head;
  p.y_row_stride = y_strides.row;
  p.batch_size = batch_size;
  p.rows = rows;
  p.num_groups = num_groups;
  p.group_dim = group_dim;
  p.in_dim = in_dim;
  if (rows == 1) {
    p.batch_size = 1;
    p.rows = batch_size;
    p.y_row_stride = y_strides.batch;
  }
  return project(p);
}

Status normalise(float* x, const Strides& strides, const AttentionParams& a, std::int32_t heads, std::int32_t rows, const float* weight,
                 float epsilon) {
  if (weight == nullptr) return Status::ok;
  return rms_norm({x, strides, a.batch_size, heads, rows, a.head_dim, weight, epsilon});
}

Status rotate(float* x, const Strides& strides, const AttentionParams& a, std::int32_t heads, std::int32_t rows, const RotaryTable& table,
              const RotaryPositions& positions) {
  if (table.cos == nullptr) return Status::ok;
  return rotary_embedding({x, x, strides, strides, a.batch_size, heads, rows, a.head_dim, table, positions});
}

/// Step 1: query, key and value, cut into heads; then norm and positions.
Status project_inputs(const SelfAttentionParams& p, const Areas& areas) {
  const AttentionParams& a = p.attention;
  const Strides query = heads_first(a.num_heads, a.seq_len_q, a.head_dim);
  const Strides key = heads_first(a.num_kv_heads, projected_rows(p), a.head_dim);
  const Strides value = heads_first(a.num_kv_heads, projected_rows(p), a.value_dim);
  Status status = project_rows(p.x, a.batch_size, a.seq_len_q, p.x_dim, p.packed_query, a.num_heads, a.head_dim, areas.query, query);
  if (status == Status::ok && p.seq_len_new > 0) {
    status = project_rows(p.key_x, a.batch_size, p.seq_len_new, p.key_x_dim, p.packed_key, a.num_kv_heads, a.head_dim, areas.key, key);
  }
  if (status == Status::ok && p.seq_len_new > 0) {
    status = project_rows(p.value_x, a.batch_size, p.seq_len_new, p.value_x_dim, p.packed_value, a.num_kv_heads, a.value_dim, areas.value,
                          value);
  }
  if (status == Status::ok) status = normalise(areas.query, query, a, a.num_heads, a.seq_len_q, p.query_norm, p.norm_epsilon);
  if (status == Status::ok) status = normalise(areas.key, key, a, a.num_kv_heads, p.seq_len_new, p.key_norm, p.norm_epsilon);
  if (status == Status::ok) status = rotate(areas.query, query, a, a.num_heads, a.seq_len_q, p.rotary, p.query_positions);
  if (status != Status::ok) return status;
  if (has_cache(p)) {
    // On their way into the cache the keys are turned as well.
    return kv_cache_append({p.cache, areas.key, areas.value, key, value, KvType::f32, p.seq_len_new, p.new_lengths, p.rotary,
                            p.key_positions, p.cache_finite});
  }
  return rotate(areas.key, key, a, a.num_kv_heads, p.seq_len_new, p.rotary, p.key_positions);
}

/// Writes the extra key and value behind the projected ones.
void place_extra_key(const SelfAttentionParams& p, const Areas& areas) {
  const AttentionParams& a = p.attention;
  const std::int32_t rows = projected_rows(p);
  for (std::int32_t b = 0; b < a.batch_size; ++b) {
    for (std::int32_t h = 0; h < a.num_kv_heads; ++h) {
      const std::ptrdiff_t row = (static_cast<std::ptrdiff_t>(b) * a.num_kv_heads + h) * rows + p.seq_len_new;
      std::copy_n(p.extra_key + static_cast<std::ptrdiff_t>(h) * a.head_dim, a.head_dim, areas.key + row * a.head_dim);
      std::copy_n(p.extra_value + static_cast<std::ptrdiff_t>(h) * a.value_dim, a.value_dim, areas.value + row * a.value_dim);
    }
  }
}

/// Steps 2 to 4 once more, for those who want to see them.
Status trace_matrices(const SelfAttentionTrace& trace, const AttentionParams& attention, const Areas& areas) {
  AttentionParams raw = attention;
  raw.scale = 1.0F;
  const AttentionParams passes[] = {
      matrix_of(raw, MatrixStage::scaled_scores, trace.scores),
      matrix_of(attention, MatrixStage::scaled_scores, trace.scaled_scores),
      matrix_of(attention, MatrixStage::masked_scores, trace.masked_scores),
      matrix_of(attention, MatrixStage::weights, trace.weights),
  };
  for (const AttentionParams& pass : passes) {
    if (pass.matrix == nullptr) continue;
    const Status status = attention_forward(pass, areas.attention, areas.attention_bytes);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

}  // namespace

std::size_t self_attention_scratch_bytes(const SelfAttentionParams& p) noexcept {
  if (validate(p) != Status::ok) return 0;
  return make_areas(p, nullptr).total_bytes;
}

Status self_attention(const SelfAttentionParams& p, void* scratch, std::size_t scratch_bytes) noexcept {
  Status status = validate(p);
  if (status != Status::ok) return status;
  if (p.attention.batch_size == 0) return Status::ok;
  if (scratch == nullptr) return Status::missing_pointer;
  const Areas areas = make_areas(p, scratch);
  if (scratch_bytes < areas.total_bytes) return Status::scratch_too_small;
  AttentionParams attention = attention_of(p, areas);

  // 1. project to query, key and value, cut into heads
  status = project_inputs(p, areas);
  if (status != Status::ok) return status;
  attention.kv_finite = has_cache(p) && p.cache_finite != nullptr && *p.cache_finite != 0;
  if (p.extra_key != nullptr) {
    place_extra_key(p, areas);
    core::apply_extra_key(attention, areas.extra_mask, areas.extra_bias);
  }

  // 2. score, 3. scale and mask, 4. softmax, 5. weighted sum: one pass over tiles, core/tile_engine.cpp (few queries: core/decode_engine.cpp)
  status = trace_matrices(p.trace, attention, areas);
  if (status == Status::ok) status = attention_forward(attention, areas.attention, areas.attention_bytes);
  if (status != Status::ok) return status;

  // 6. concatenate: step 5 has written positions first, so the heads of a position lie side by side already

  // 7. project back
  const std::int32_t width = attention.num_heads * attention.value_dim;
  return project_rows(areas.context, 1, attention.batch_size * attention.seq_len_q, width, p.packed_output, 1, p.output_dim, p.output,
                      {0, 0, p.output_dim});
}

}  // namespace attn
