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
  // What queries see, going by range, only moves on from one to the next.
  const std::int32_t begin = visible_range(p, tile.batch, 0).begin;
  const std::int32_t end = visible_range(p, tile.batch, p.seq_len_q - 1).end;
  const std::int32_t block = std::min(kPackBlock, work.plan.key_tile);
  for (std::int32_t first = begin; first < end; first += block) {
    const int count = std::min(block, end - first);
    const FloatRows value = value_rows(p, tile, first, count, ws);
    kernels::pack_values<Arch>(value.data, value.stride, count, p.value_dim,
                               ws.packed_values + static_cast<std::ptrdiff_t>(first) * kernels::kPanel<Arch>, work.plan.packed_stride);
  }
  *ws.packed_head = head;
  return ws.packed_values;
}

void forget_packed_values(const AttentionWork& work, std::int32_t thread) {
  if (work.plan.packed_floats > 0) *work.workspace(thread).packed_head = kNoHead;
}

}  // namespace attn::core
