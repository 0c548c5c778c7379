#pragma once

#include "support/problem.h"

namespace attn::test {

/// Equal as IEEE numbers go: both NaN, the same infinity, or closer than the tolerance.
[[nodiscard]] bool agrees(double got, double want, double tolerance);

/// Runs the problem and holds everything it asked for (output, lse, matrix) against the double reference. Each number has its own
/// tolerance: the rounding of its scores, carried through the softmax to first order. See tolerance.h for the constants.
void check_against_reference(Problem& problem);

/// Compares the results that are already there.
void compare_with_reference(Problem& problem);

/// Both have run: the same bits in all outputs.
[[nodiscard]] bool same_bits(Problem& a, Problem& b);

/// Both have run; outputs agree within the tolerance per element, relative to values of magnitude 1.
void check_same_output(Problem& a, Problem& b, double tolerance);

}  // namespace attn::test
