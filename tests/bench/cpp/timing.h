#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace attn::bench {

/// Milliseconds of `work()`, again and again for about `budget_ms`: at least once, at most `most` times.
template <class Work>
std::vector<double> time_each(double budget_ms, std::size_t most, Work&& work) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); };
  std::vector<double> times;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    work();
    times.push_back(since(start));
  } while (times.size() < most && since(begin) < budget_ms);
  return times;
}

inline double best(const std::vector<double>& times) { return *std::min_element(times.begin(), times.end()); }

/// Floats aligned to a cache line: what scratch memory and packed weights want.
class Floats {
 public:
  explicit Floats(std::size_t count) : data_(static_cast<float*>(::operator new(std::max<std::size_t>(count, 1) * sizeof(float), kLine))) {
    std::fill_n(data_.get(), count, 0.0F);
  }
  /// The same numbers in every run, between -1.7 and 1.7 (standard deviation 1) times `scale`.
  Floats(std::size_t count, std::uint32_t seed, float scale = 1.0F) : Floats(count) {
    for (std::size_t i = 0; i < count; ++i) {
      seed = seed * 1664525U + 1013904223U;
      data_.get()[i] = scale * 3.4641016F * (static_cast<float>(seed >> 8U) / 16777216.0F - 0.5F);
    }
  }
  float* get() { return data_.get(); }
  [[nodiscard]] const float* get() const { return data_.get(); }
  float& operator[](std::size_t i) { return data_.get()[i]; }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, kLine); }
  };
  std::unique_ptr<float, Free> data_;
};

/// Parts of the program; each returns an exit code.
int run_kernels(const char* const* names, int count);
int run_workload(const char* const* words, int count);

}  // namespace attn::bench
