#include "core/extra_key.h"

#include "core/visibility.h"

namespace attn::core {
namespace {

/// Batch rows and heads that the new matrix tells apart.
struct Extent {
  std::int32_t batch = 1;
  std::int32_t heads = 1;
};

bool has_positions(const AttentionParams& a) { return a.causal || a.window_left >= 0 || a.window_right >= 0; }

Extent mask_extent(const AttentionParams& a) {
  const bool per_batch = a.key_lengths != nullptr || (has_positions(a) && a.query_offsets != nullptr) || a.mask_strides.batch != 0;
  return {per_batch ? a.batch_size : 1, a.mask != nullptr && a.mask_strides.head != 0 ? a.num_heads : 1};
}

Extent bias_extent(const AttentionParams& a) {
  return {a.bias_strides.batch != 0 ? a.batch_size : 1, a.bias_strides.head != 0 ? a.num_heads : 1};
}

std::size_t elements(const Extent& extent, const AttentionParams& a) {
  return static_cast<std::size_t>(extent.batch) * static_cast<std::size_t>(extent.heads) * static_cast<std::size_t>(a.seq_len_q) *
         static_cast<std::size_t>(a.seq_len_k);
}

ScoreStrides dense(const Extent& extent, const AttentionParams& a) {
  const std::ptrdiff_t matrix = static_cast<std::ptrdiff_t>(a.seq_len_q) * a.seq_len_k;
  return {extent.batch > 1 ? extent.heads * matrix : 0, extent.heads > 1 ? matrix : 0, a.seq_len_k, 1};
}

}  // namespace

ExtraKeyPlan plan_extra_key(const AttentionParams& a) noexcept {
  ExtraKeyPlan plan;
  if (has_positions(a) || a.key_lengths != nullptr || a.mask != nullptr) plan.mask_bytes = elements(mask_extent(a), a);
  if (a.bias != nullptr) plan.bias_floats = elements(bias_extent(a), a);
  return plan;
}

void apply_extra_key(AttentionParams& a, std::uint8_t* mask, float* bias) noexcept {
  const std::int32_t last = a.seq_len_k - 1;
  // Without lengths the range would reach the extra key, which is cut off here and added to every row below.
  AttentionParams others = a;
  others.seq_len_k = last;
  others.bias = nullptr;
  if (mask != nullptr) {
    const Extent extent = mask_extent(a);
    std::uint8_t* to = mask;
    for (std::int32_t b = 0; b < extent.batch; ++b) {
      for (std::int32_t h = 0; h < extent.heads; ++h) {
        for (std::int32_t t = 0; t < a.seq_len_q; ++t) {
          const KeyRange range = visible_range(others, b, t);
          for (std::int32_t s = 0; s < last; ++s) *to++ = s >= range.begin && s < range.end && passes_mask(others, b, h, t, s) ? 1 : 0;
          *to++ = 1;
        }
      }
    }
    a.mask = mask;
    a.mask_strides = dense(extent, a);
    a.causal = false;
    a.window_left = a.window_right = -1;
    a.key_lengths = nullptr;
  }
  if (bias != nullptr) {
    const Extent extent = bias_extent(a);
    float* to = bias;
    for (std::int32_t b = 0; b < extent.batch; ++b) {
      for (std::int32_t h = 0; h < extent.heads; ++h) {
        for (std::int32_t t = 0; t < a.seq_len_q; ++t) {
          const ScoreStrides& from = a.bias_strides;
          for (std::int32_t s = 0; s < last; ++s) *to++ = a.bias[b * from.batch + h * from.head + t * from.query + s * from.key];
          *to++ = 0.0F;
        }
      }
    }
    a.bias = bias;
    a.bias_strides = dense(extent, a);
  }
}

}  // namespace attn::core
