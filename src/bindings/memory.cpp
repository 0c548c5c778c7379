#include "bindings/memory.h"

#include <emscripten/bind.h>
#include <emscripten/heap.h>

#include <cstdint>
#include <cstdlib>

#include "bindings/abi.h"

namespace attn::bindings {
namespace {

constexpr std::size_t kAlignment = 64;
/// Scratch memory grows in steps of this size, so that a few different small shapes settle at once.
constexpr std::size_t kScratchStep = 65536;

/// In front of each area, in a cache line of its own so that the area keeps its alignment.
struct Header {
  std::size_t bytes;
};
static_assert(sizeof(Header) <= kAlignment);

std::size_t bytes_in_use = 0;
std::size_t peak_bytes = 0;

void* scratch_area = nullptr;
std::size_t scratch_area_bytes = 0;

std::uint32_t allocate_address(std::uint32_t bytes) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(allocate(bytes)));
}

void release_address(Pointer address) { release(as<void>(address)); }

double count_in_use() { return static_cast<double>(bytes_in_use); }
double count_peak() { return static_cast<double>(peak_bytes); }
double count_maximum() { return static_cast<double>(emscripten_get_heap_max()); }

}  // namespace

void* allocate(std::size_t bytes) noexcept {
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t total = rounded + kAlignment;
  if (rounded < bytes || total < rounded) return nullptr;  // wrapped round: would hand out a tiny area for a huge request
  auto* start = static_cast<std::byte*>(std::aligned_alloc(kAlignment, total));
  if (start == nullptr) return nullptr;
  reinterpret_cast<Header*>(start)->bytes = total;
  bytes_in_use += total;
  if (bytes_in_use > peak_bytes) peak_bytes = bytes_in_use;
  return start + kAlignment;
}

void release(void* pointer) noexcept {
  if (pointer == nullptr) return;
  auto* start = static_cast<std::byte*>(pointer) - kAlignment;
  bytes_in_use -= reinterpret_cast<Header*>(start)->bytes;
  std::free(start);
}

void* scratch(std::size_t bytes) noexcept {
  if (bytes <= scratch_area_bytes && scratch_area != nullptr) return scratch_area;
  release(scratch_area);  // first: the two together would make the peak
  const std::size_t rounded = (bytes + kScratchStep - 1) / kScratchStep * kScratchStep;
  scratch_area = rounded < bytes ? nullptr : allocate(rounded == 0 ? kScratchStep : rounded);
  scratch_area_bytes = scratch_area == nullptr ? 0 : rounded;
  return scratch_area;
}

EMSCRIPTEN_BINDINGS(memory) {
  emscripten::function("allocate", &allocate_address);
  emscripten::function("release", &release_address);
  emscripten::function("bytesInUse", &count_in_use);
  emscripten::function("peakBytes", &count_peak);
  emscripten::function("maximumBytes", &count_maximum);
}

}  // namespace attn::bindings
