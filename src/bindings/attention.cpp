#include <emscripten/bind.h>

#include <cstdint>

#include "attn/attention.h"
#include "bindings/attention_block.h"
#include "bindings/memory.h"

namespace attn::bindings {
namespace {

std::int32_t forward(Pointer address) {
  auto& block = *as<AttentionBlock>(address);
  const AttentionParams params = params_of(block);
  const std::size_t bytes = attention_scratch_bytes(params);
  block.scratch_bytes = static_cast<std::uint32_t>(bytes);
  void* memory = scratch(bytes);
  if (memory == nullptr) return static_cast<std::int32_t>(Status::out_of_memory);
  return static_cast<std::int32_t>(attention_forward(params, memory, bytes));
}

std::int32_t block_bytes() { return sizeof(AttentionBlock); }

}  // namespace

EMSCRIPTEN_BINDINGS(attention) {
  emscripten::function("attentionBlockBytes", &block_bytes);
  emscripten::function("attentionForward", &forward);
}

}  // namespace attn::bindings
