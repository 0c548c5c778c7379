#pragma once

#include <cstdint>

namespace attn::bindings {

/// Changes whenever the layout of a block or the set of bound functions changes; ABI_VERSION in src/js/glue-module.ts is the same number.
/// The loader refuses a file that says anything else.
inline constexpr std::int32_t kAbiVersion = 2;

/// A block is a plain struct of 4-byte words that TypeScript fills in WASM memory, so that one call passes one number.
/// The same list of words stands in src/js (attention-block.ts, projection-block.ts); a test compares the two.
using Pointer = std::uint32_t;

template <typename T>
[[nodiscard]] T* as(Pointer address) noexcept {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));  // NOLINT(performance-no-int-to-ptr): the border of two languages
}

}  // namespace attn::bindings
