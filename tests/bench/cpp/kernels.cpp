// The kernels of prefill, each alone on the tile that it works on.

#include <cmath>
#include <cstdio>
#include <cstring>

#include "kernels/online_softmax.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/weighted_sum.hpp"
#include "timing.h"

namespace attn::bench {
namespace {

using Arch = kernels::DefaultArch;
constexpr int kP = kernels::kPanel<Arch>;
constexpr int kQueries = 4 * kP;
constexpr int kKeys = 64;
constexpr int kHeadDim = 64;
constexpr kernels::KeySpan kSpans[] = {{0, kKeys}, {0, kKeys}, {0, kKeys}, {0, kKeys}};
constexpr double kBudgetMs = 200;
constexpr int kRepeats = 100;

struct Result {
  double error;         // against double
  double milliseconds;  // of one call
  double units;         // multiply-adds times 2, or exponentials
};

template <class Kernel>
double milliseconds_of(Kernel&& kernel) {
  const auto times = time_each(kBudgetMs, 100000, [&] {
    for (int i = 0; i < kRepeats; ++i) kernel();
  });
  return best(times) / kRepeats;
}

Result score_tile() {
  const Floats key(kKeys * kHeadDim, 1);
  const Floats panels(kQueries * kHeadDim, 2);
  Floats scores(kKeys * kQueries);
  const auto run = [&] {
    kernels::score_tile<Arch>(key.get(), kHeadDim, kKeys, panels.get(), kSpans, kQueries / kP, kHeadDim, scores.get(), kQueries);
  };
  run();
  double error = 0;
  for (int j = 0; j < kKeys; ++j) {
    for (int c = 0; c < kQueries; ++c) {
      double sum = 0;
      for (int d = 0; d < kHeadDim; ++d) {
        sum += double{key.get()[j * kHeadDim + d]} * double{panels.get()[(c / kP) * kP * kHeadDim + d * kP + c % kP]};
      }
      error = std::max(error, std::abs(sum - double{scores.get()[j * kQueries + c]}));
    }
  }
  return {error, milliseconds_of(run), 2.0 * kKeys * kQueries * kHeadDim};
}

Result weighted_sum_tile() {
  const Floats weights(kKeys * kQueries, 3);
  const Floats value(kKeys * kHeadDim, 4);
  const Floats rescale(kQueries);
  Floats tail(kKeys * kernels::kLanes<Arch>);
  Floats acc(kQueries * kHeadDim);
  const auto run = [&] {
    kernels::weighted_sum_tile<Arch>(weights.get(), kQueries, kQueries, kKeys, kSpans, value.get(), kHeadDim, kHeadDim, rescale.get(),
                                     acc.get(), kHeadDim, true, tail.get());
  };
  run();
  double error = 0;
  for (int r = 0; r < kQueries; ++r) {
    for (int c = 0; c < kHeadDim; ++c) {
      double sum = 0;
      for (int j = 0; j < kKeys; ++j) sum += double{weights.get()[j * kQueries + r]} * double{value.get()[j * kHeadDim + c]};
      error = std::max(error, std::abs(sum - double{acc.get()[r * kHeadDim + c]}));
    }
  }
  return {error, milliseconds_of(run), 2.0 * kKeys * kQueries * kHeadDim};
}

Result online_softmax() {
  const Floats scores(kKeys * kP, 5, 3.0F);
  Floats weights(kKeys * kP);
  Floats state(4 * kP);
  float* const row_max = state.get();
  const auto run = [&] {
    std::memcpy(weights.get(), scores.get(), sizeof(float) * kKeys * kP);
    std::fill_n(row_max, kP, -kernels::kInfinity);
    std::fill_n(row_max + kP, 3 * kP, 0.0F);
    kernels::online_softmax_panel<Arch>(weights.get(), kP, kKeys, row_max, row_max + kP, row_max + 2 * kP, row_max + 3 * kP);
  };
  run();
  double error = 0;
  for (int c = 0; c < kP; ++c) {
    for (int j = 0; j < kKeys; ++j) {
      const double expected = std::exp(double{scores.get()[j * kP + c]} - double{row_max[c]});
      error = std::max(error, std::abs(expected - double{weights.get()[j * kP + c]}));
    }
  }
  return {error, milliseconds_of(run), 1.0 * kKeys * kP};
}

struct Kernel {
  const char* name;
  const char* unit;
  Result (*run)();
};
constexpr Kernel kKernels[] = {
    {"score_tile", "GFLOP/s", score_tile},
    {"weighted_sum_tile", "GFLOP/s", weighted_sum_tile},
    {"online_softmax_panel", "1e9 exp/s", online_softmax},
};

}  // namespace

int run_kernels(const char* const* names, int count) {
  std::printf("\nKernels on this machine (%s, %d lanes): %d queries, %d keys, head_dim %d\n", Arch::name(), kernels::kLanes<Arch>, kQueries,
              kKeys, kHeadDim);
  int code = 0;
  for (const Kernel& kernel : kKernels) {
    bool wanted = count == 0;
    for (int i = 0; i < count; ++i) wanted = wanted || std::strstr(kernel.name, names[i]) != nullptr;
    if (!wanted) continue;
    const Result result = kernel.run();
    const bool right = result.error < 1e-4;
    std::printf("%-22s %7.1f %-10s error %.1e%s\n", kernel.name, result.units / result.milliseconds / 1e6, kernel.unit, result.error,
                right ? "" : " WRONG");
    if (!right) code = 1;
  }
  return code;
}

}  // namespace attn::bench
