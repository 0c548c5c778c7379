#pragma once

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace attn::test {

/// The seed of all random tests; ATTENTION_TEST_SEED=n overrides it (natively: WASM in Node has no environment of its own).
inline std::uint64_t base_seed() {
  const char* text = std::getenv("ATTENTION_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20250101U;
}

/// Random numbers that are the same with every compiler: the standard fixes the engine, but not its distributions.
class Random {
 public:
  /// Each test has its own stream, so that adding a test changes no other. A failing test prints `seed()`.
  explicit Random(std::string_view test) : seed_(base_seed()) {
    std::uint64_t hash = 14695981039346656037U ^ seed_;  // FNV-1a
    for (const char c : test) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    engine_.seed(hash);
  }

  [[nodiscard]] std::uint64_t seed() const { return seed_; }

  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  float real(double low, double high) { return static_cast<float>(uniform(low, high)); }
  /// both ends included
  int integer(int low, int high) { return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1)); }
  bool chance(double probability) { return uniform(0, 1) < probability; }

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[integer(0, static_cast<int>(choices.size()) - 1)];
  }

  /// 0..count-1 in random order
  std::vector<int> permutation(int count) {
    std::vector<int> order(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
    for (int i = count - 1; i > 0; --i) std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(integer(0, i))]);
    return order;
  }

 private:
  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace attn::test
