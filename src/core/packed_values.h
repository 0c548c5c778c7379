#pragma once

#include <cstdint>

#include "core/attention_work.h"

namespace attn::core {

/// The values of the tile's key head in panels (kernels/value_panel.hpp), plan.packed_stride floats apart: those that the thread has, or packed
/// now. Only keys that some query sees, going by range, are there. Each thread packs for itself: what it reads again and again lies in its own
/// cache, as far as that goes, and tiles of one head follow each other.
const float* packed_values(const AttentionWork& work, const RowTile& tile, Workspace& ws);

/// Forgets what a thread has packed: the scratch of a new call holds anything.
void forget_packed_values(const AttentionWork& work, std::int32_t thread);

}  // namespace attn::core
