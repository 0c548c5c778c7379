#include <emscripten/bind.h>

#include <cstdint>

#include "attn/parallel.h"
#include "bindings/abi.h"

namespace attn::bindings {
namespace {

std::int32_t abi_version() { return kAbiVersion; }

/// Bit 0: relaxed SIMD; bit 1: threads.
std::int32_t build_flags() {
  std::int32_t flags = 0;
#if defined(ATTN_RELAXED_SIMD) && ATTN_RELAXED_SIMD
  flags |= 1;
#endif
#if defined(ATTN_THREADS) && ATTN_THREADS
  flags |= 2;
#endif
  return flags;
}

std::int32_t start(std::int32_t count, bool may_block) { return start_threads(count, may_block); }
void stop() { stop_threads(); }
std::int32_t count() { return thread_count(); }
bool ready() { return threads_ready(); }

}  // namespace

EMSCRIPTEN_BINDINGS(module) {
  emscripten::function("abiVersion", &abi_version);
  emscripten::function("buildFlags", &build_flags);
  emscripten::function("startThreads", &start);
  emscripten::function("stopThreads", &stop);
  emscripten::function("threadCount", &count);
  emscripten::function("threadsReady", &ready);
}

}  // namespace attn::bindings
