#pragma once

#include <cstdint>

#if defined(__FAST_MATH__)
#error "attention-wasm must not be compiled with fast-math: masks are infinities, and NaN in the input has to stay visible."
#endif

namespace attn {

/// What a call of the C++ API says of itself. On anything but `ok` no output has been written.
enum class Status : std::int32_t {
  ok = 0,
  /// A size is negative, a product of sizes does not fit, or sizes contradict each other.
  invalid_shape = 1,
  /// An option is outside its range (a scale that is NaN, a negative softcap, an unknown enumerator).
  invalid_option = 2,
  /// A pointer that the sizes make necessary is null.
  missing_pointer = 3,
  /// The scratch memory handed in is smaller than what the matching `..._scratch_bytes` asks for.
  scratch_too_small = 4,
  /// Memory could not be allocated.
  out_of_memory = 5,
};

}  // namespace attn
