#pragma once

#include <cstddef>

#include "attn/attention.h"

namespace attn::core {

/// An extra key, the last one, that every query sees (PyTorch's bias_k): a mask can say that, positions cannot. So what lengths, causality,
/// window and mask say of the other keys becomes one yes/no mask, and the bias gets one more column of 0.
/// `attention` counts the extra key in seq_len_k; its mask and bias have seq_len_k - 1 columns.
struct ExtraKeyPlan {
  /// bytes of the mask, 0 = none needed
  std::size_t mask_bytes = 0;
  /// floats of the bias, 0 = none needed
  std::size_t bias_floats = 0;
};

[[nodiscard]] ExtraKeyPlan plan_extra_key(const AttentionParams& attention) noexcept;

/// Fills `mask` and `bias` as planned and makes the call use them. O(seq_len_q * seq_len_k) for each mask of its own.
void apply_extra_key(AttentionParams& attention, std::uint8_t* mask, float* bias) noexcept;

}  // namespace attn::core
