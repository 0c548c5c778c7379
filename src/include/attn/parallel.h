#pragma once

#include <cstdint>

namespace attn {

/// Starts the threads that kernels may use; `num_threads` counts the calling thread. Called once, before the first computation.
/// `may_block`: the calling thread may sleep while it waits for others (not so the main thread of a page, which looks again and again).
/// Returns the number of threads that will be used: 1 where threads are not compiled in (ATTN_THREADS undefined) or could not start.
std::int32_t start_threads(std::int32_t num_threads, bool may_block = true) noexcept;

/// Ends them; afterwards everything runs on the calling thread. Safe to call when none were started.
void stop_threads() noexcept;

/// Threads in use, the calling one included.
[[nodiscard]] std::int32_t thread_count() noexcept;

/// True when all started threads wait for work (a browser starts them only after the caller returned to its event loop).
[[nodiscard]] bool threads_ready() noexcept;

/// fn(context, item, thread) for each item in [0, num_items), thread in [0, thread_count()). Threads take items from one counter,
/// so items should be many and similar. `work` is an estimate in multiply-adds for the whole call; little work stays on the
/// calling thread. Returns when all items are done. Not reentrant.
void parallel_for(std::int32_t num_items, double work, void (*fn)(void* context, std::int32_t item, std::int32_t thread),
                  void* context) noexcept;

}  // namespace attn
