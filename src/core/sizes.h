#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace attn::core {

/// Whether the product of sizes, none of them negative, can be counted in 32 bits. A size of 0 makes it so, whatever the others are.
inline bool addressable(std::initializer_list<std::int64_t> sizes) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size == 0) return true;
  }
  for (const std::int64_t size : sizes) {
    if (product > kLimit / size) return false;
    product *= size;
  }
  return true;
}

}  // namespace attn::core
