#pragma once

#include "kernels/exp.hpp"

namespace attn::kernels {

/// Keys, or vectors of keys, whose weights are summed plainly before the sum is added with compensation.
inline constexpr int kSumBlock = 8;

/// Keys whose exponentials online_softmax_panel works on at a time.
inline constexpr int kExpBlock = 32;
static_assert(kExpBlock % kSumBlock == 0);

/// sum += x, where `error` is what earlier additions have added too much (Kahan).
template <class Arch>
[[gnu::always_inline]] inline void add_compensated(Vec<Arch>& sum, Vec<Arch>& error, Vec<Arch> x) {
  const Vec<Arch> corrected = x - error;
  const Vec<Arch> next = sum + corrected;
  error = (next - sum) - corrected;
  sum = next;
}

/// One step of the online softmax (arXiv:1805.02867, algorithm 3; as used by flash-attention, arXiv:2205.14135) for one panel of queries.
///
///   new_max = max(row_max, max_j scores_t[j])        scores_t[j] <- exp(scores_t[j] - new_max)
///   rescale = exp(row_max - new_max)                 row_sum     <- row_sum * rescale + sum_j scores_t[j]
///
/// An exponential is a chain of a dozen steps, too long for a core to overlap as many as would fill its units: it is cut in two, with a block
/// of exponents put down in between (measured: 1.3 to 1.4 times as fast on Zen 3).
/// The sum is taken over kSumBlock keys at a time and added to row_sum with Kahan's compensation, kept in row_error: thousands of small
/// weights beside a large one would otherwise round the same way each time.
/// scores_t [num_keys][scores_stride], in place; row_max, row_sum, row_error, rescale [kPanel].
template <class Arch>
ATTN_KERNEL inline void online_softmax_panel(float* scores_t, std::ptrdiff_t scores_stride, int num_keys, float* row_max, float* row_sum,
                                             float* row_error, float* rescale) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;

  const ExpNonPositive<Arch> exp;
  const V old0 = load<Arch>(row_max);
  const V old1 = load<Arch>(row_max + kW);
  // Four maxima a column: a single one would wait for itself.
  V max0[4] = {old0, old0, old0, old0};
  V max1[4] = {old1, old1, old1, old1};
  int j = 0;
  for (; j + 4 <= num_keys; j += 4) {
    for (int u = 0; u < 4; ++u) {
      const float* s = scores_t + (j + u) * scores_stride;
      max0[u] = max_any_nan<Arch>(max0[u], load<Arch>(s));
      max1[u] = max_any_nan<Arch>(max1[u], load<Arch>(s + kW));
    }
  }
  for (; j < num_keys; ++j) {
    const float* s = scores_t + j * scores_stride;
    max0[0] = max_any_nan<Arch>(max0[0], load<Arch>(s));
    max1[0] = max_any_nan<Arch>(max1[0], load<Arch>(s + kW));
  }
  const V new0 = max_any_nan<Arch>(max_any_nan<Arch>(max0[0], max0[1]), max_any_nan<Arch>(max0[2], max0[3]));
  const V new1 = max_any_nan<Arch>(max_any_nan<Arch>(max1[0], max1[1]), max_any_nan<Arch>(max1[2], max1[3]));
  store<Arch>(row_max, new0);
  store<Arch>(row_max + kW, new1);

  // All keys hidden so far: -inf - -inf would be NaN. With 0 in its place every weight is exp(-inf) = 0.
  const V shift0 = xsimd::select(new0 == V(-kInfinity), V(0.0F), new0);
  const V shift1 = xsimd::select(new1 == V(-kInfinity), V(0.0F), new1);
  const V alpha0 = exp(old0 - shift0);
  const V alpha1 = exp(old1 - shift1);
  store<Arch>(rescale, alpha0);
  store<Arch>(rescale + kW, alpha1);

  V sum0 = load<Arch>(row_sum) * alpha0;
  V sum1 = load<Arch>(row_sum + kW) * alpha1;
  V error0 = load<Arch>(row_error) * alpha0;
  V error1 = load<Arch>(row_error + kW) * alpha1;
  alignas(64) float powers[kExpBlock * kPanel<Arch>];
  const auto reduce = [&](float* s, V shift, float* power) {
    const auto parts = exp.reduce(load<Arch>(s) - shift);
    store<Arch>(s, parts.rest);
    store<Arch>(power, parts.power);
  };
  const auto expand = [&](float* s, const float* power) {
    const V weight = exp.expand({load<Arch>(power), load<Arch>(s)});
    store<Arch>(s, weight);
    return weight;
  };
  for (int first = 0; first < num_keys; first += kExpBlock) {
    const int last = num_keys - first < kExpBlock ? num_keys : first + kExpBlock;
    float* power = powers;
    ATTN_NO_UNROLL
    for (j = first; j < last; ++j, power += kPanel<Arch>) {
      reduce(scores_t + j * scores_stride, shift0, power);
      reduce(scores_t + j * scores_stride + kW, shift1, power + kW);
    }
    power = powers;
    for (j = first; j < last;) {
      const int end = last - j < kSumBlock ? last : j + kSumBlock;
      V part0(0.0F);
      V part1(0.0F);
      ATTN_NO_UNROLL
      for (; j < end; ++j, power += kPanel<Arch>) {
        part0 += expand(scores_t + j * scores_stride, power);
        part1 += expand(scores_t + j * scores_stride + kW, power + kW);
      }
      add_compensated<Arch>(sum0, error0, part0);
      add_compensated<Arch>(sum1, error1, part1);
    }
  }
  store<Arch>(row_sum, sum0);
  store<Arch>(row_sum + kW, sum1);
  store<Arch>(row_error, error0);
  store<Arch>(row_error + kW, error1);
}

}  // namespace attn::kernels
