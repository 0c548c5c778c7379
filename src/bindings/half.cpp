#include "attn/half.h"

#include <emscripten/bind.h>

#include <cstddef>
#include <cstdint>

#include "bindings/abi.h"

namespace attn::bindings {
namespace {

void to_float(Pointer source, Pointer target, std::uint32_t elements) {
  half_to_float(as<const std::uint16_t>(source), as<float>(target), static_cast<std::ptrdiff_t>(elements));
}

void to_half(Pointer source, Pointer target, std::uint32_t elements) {
  float_to_half(as<const float>(source), as<std::uint16_t>(target), static_cast<std::ptrdiff_t>(elements));
}

}  // namespace

EMSCRIPTEN_BINDINGS(half) {
  emscripten::function("halfToFloat", &to_float);
  emscripten::function("floatToHalf", &to_half);
}

}  // namespace attn::bindings
