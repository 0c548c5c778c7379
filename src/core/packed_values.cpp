#include "core/packed_values.h"

#include <algorithm>

#include "core/visibility.h"
#include "kernels/value_panel.hpp"

namespace attn::core {
namespace {

constexpr std::int32_t kNoHead = -1;
/// Keys that are packed at a time: panel after panel reads them again, from L1.
constexpr std::int32_t kPackBlock = 32;

}  // namespace

const float* packed_values(const AttentionWork& work, const RowTile& tile, Workspace& ws) {
  const AttentionParams& p = work.params;
  const std::int32_t head = tile.batch * p.num_kv_heads + tile.kv_head;
  if (*ws.packed_head == head) return ws.packed_values;
  const std::int32_t keys = key_count(p, tile.batch);
  for (std::int32_t first = 0; first < keys; first += kPackBlock) {
    const int count = std::min(kPackBlock, keys - first);
    const FloatRows value = value_rows(p, tile, first, count, ws);
    kernels::pack_values<Arch>(value.data, value.stride, count, p.value_dim,
                               ws.packed_values + static_cast<std::ptrdiff_t>(first) * kernels::kPanel<Arch>, work.plan.packed_stride);
  }
  *ws.packed_head = head;
  return ws.packed_values;
}

void forget_packed_values(const AttentionWork& work, std::int32_t thread) {
  if (work.plan.packed_stride > 0) *work.workspace(thread).packed_head = kNoHead;
}

}  // namespace attn::core
