#pragma once

#include <cstddef>

namespace attn::bindings {

/// `bytes` bytes at a multiple of 64, counted; null when there is no room.
[[nodiscard]] void* allocate(std::size_t bytes) noexcept;

/// Gives back what `allocate` gave; null is allowed.
void release(void* pointer) noexcept;

/// The one scratch area of this instance, at least `bytes` bytes; null when there is no room. It is kept for the next call and only grows.
/// Its contents do not survive growth. Calls into an instance never nest, so one area is enough.
[[nodiscard]] void* scratch(std::size_t bytes) noexcept;

}  // namespace attn::bindings
