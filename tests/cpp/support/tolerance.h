#pragma once

#include <cmath>
#include <limits>

// Every tolerance of the C++ tests, in units of float32's epsilon, with its reason.

namespace attn::test {

inline constexpr double kEpsilon = std::numeric_limits<float>::epsilon();  // 2^-23, 1.19e-7

/// USER-CASES part N: 2e-6 unless said otherwise. For closed forms with results of about 1.
inline constexpr double kClosedForm = 2e-6;

/// Rows of weights sum to 1 (USER-CASES N05, N29).
inline constexpr double kRowSum = 1e-6;

/// Below this a float32 is subnormal and may be flushed: no relative accuracy is asked for (USER-CASES N28).
inline constexpr double kTiny = 1.2e-38;

/// The exponential alone: relative above -87, absolute below it (USER-CASES N28).
inline constexpr double kExpRelative = 5e-7;
inline constexpr double kExpAbsolute = 1e-37;
inline constexpr double kExpLimit = -87.0;

/// "No more than twice the error of the plain float32 loops."
inline constexpr double kTimesPlain = 2.0;

/// A sum of `count` float32 products, given the sum of their magnitudes. Worst case count / 2 epsilon; random signs make it grow as
/// the root; vector lanes make each chain shorter. Four covers product, scale, the change to base 2 and the sum.
inline double score_error(double magnitude) { return 4 * kEpsilon * magnitude; }

/// Softcap and tanh: a few epsilon of the cap, as tanh(x) is computed from e^2x near 1.
inline double softcap_error(double cap) { return 4 * kEpsilon * cap; }

/// Relative error of a weight beyond that of the scores: the exponential (5e-7), a sum over `keys` weights (tiles and lanes keep its
/// growth at a root), the quotient, and the rescaling of earlier tiles.
inline double weight_error(double keys) { return kExpRelative + (8 + std::sqrt(keys)) * kEpsilon; }

/// A weighted sum of `keys` values, relative to the sum of magnitudes.
inline double weighted_sum_error(double keys) { return weight_error(keys) + (4 + std::sqrt(keys)) * kEpsilon; }

/// Worst case of a weighted sum of ones: half an epsilon for each key of a tile of up to 128, which starts from 0, and for each tile.
inline double tiled_sum_error(double keys) { return (128 + keys / 128) * kEpsilon / 2; }

/// A projection of width in_dim, relative to the sum of magnitudes.
inline double projection_error(double in_dim) { return (2 + std::sqrt(in_dim)) * kEpsilon; }

}  // namespace attn::test
