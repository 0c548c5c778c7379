#include "attn/parallel.h"

#if defined(ATTN_THREADS)
#include <pthread.h>

#include <atomic>
#include <cstdint>
#endif

namespace attn {

#if !defined(ATTN_THREADS)

std::int32_t start_threads(std::int32_t /*num_threads*/, bool /*may_block*/) noexcept { return 1; }
void stop_threads() noexcept {}
std::int32_t thread_count() noexcept { return 1; }
bool threads_ready() noexcept { return true; }

void parallel_for(std::int32_t num_items, double /*work*/, void (*fn)(void* context, std::int32_t item, std::int32_t thread),
                  void* context) noexcept {
  for (std::int32_t item = 0; item < num_items; ++item) fn(context, item, 0);
}

#else

namespace {

constexpr std::int32_t kMaxThreads = 64;
/// Multiply-adds below which waking another thread costs more than it brings (about 20 microseconds of work).
constexpr double kSmallWork = 5e5;
/// How often a thread looks again before it goes to sleep: calls in a row find the workers awake.
constexpr int kSpins = 4000;

/// The gate of a job: kOpen while threads may join, plus the number of workers inside. The caller closes it when the items have run out and
/// waits for those inside. A worker that wakes up too late finds it closed and sleeps on, so nobody ever waits for a sleeping thread.
constexpr std::uint32_t kOpen = 0x80000000U;

struct Pool {
  std::int32_t threads = 1;
  pthread_t handles[kMaxThreads] = {};
  std::atomic<std::int32_t> ready{0};
  std::atomic<bool> quit{false};
  /// Whether the calling thread may sleep. The main thread of a page may not.
  bool may_block = false;
  /// Counts jobs; workers sleep on it.
  std::atomic<std::uint32_t> jobs{0};
  std::atomic<std::uint32_t> gate{0};
  std::atomic<std::int32_t> next{0};
  std::int32_t num_items = 0;
  void (*fn)(void*, std::int32_t, std::int32_t) = nullptr;
  void* context = nullptr;
};

Pool pool;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Sleeps while `word` holds `seen`; may wake up for no reason.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
#if defined(__wasm__)
  __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&word), static_cast<int>(seen), -1);
#else
  word.wait(seen);
#endif
}

void wake_all(std::atomic<std::uint32_t>& word) {
#if defined(__wasm__)
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&word), kMaxThreads);
#else
  word.notify_all();
#endif
}

bool enter() {
  std::uint32_t seen = pool.gate.load(std::memory_order_relaxed);
  while ((seen & kOpen) != 0) {
    if (pool.gate.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void take_items(std::int32_t thread) {
  for (;;) {
    const std::int32_t item = pool.next.fetch_add(1, std::memory_order_relaxed);
    if (item >= pool.num_items) return;
    pool.fn(pool.context, item, thread);
  }
}

void* work_until_told(void* index) {
  const auto thread = static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(index));
  std::uint32_t seen = 0;
  pool.ready.fetch_add(1);
  while (!pool.quit.load(std::memory_order_acquire)) {
    std::uint32_t now = pool.jobs.load(std::memory_order_acquire);
    for (int spin = 0; now == seen && spin < kSpins; ++spin) {
      pause_briefly();
      now = pool.jobs.load(std::memory_order_acquire);
    }
    if (now == seen) {
      sleep_while(pool.jobs, seen);
      continue;
    }
    seen = now;
    if (enter()) {
      take_items(thread);
      // The last one out of a closed gate wakes the caller, should it have gone to sleep.
      if (pool.gate.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_all(pool.gate);
    }
  }
  return nullptr;
}

}  // namespace

std::int32_t start_threads(std::int32_t num_threads, bool may_block) noexcept {
  stop_threads();
  pool.may_block = may_block;
  if (num_threads > kMaxThreads) num_threads = kMaxThreads;
  pool.quit = false;
  pool.ready = 0;
  pool.jobs = 0;
  for (std::int32_t i = 1; i < num_threads; ++i) {
    if (pthread_create(&pool.handles[i], nullptr, work_until_told, reinterpret_cast<void*>(static_cast<std::intptr_t>(i))) != 0) break;
    pool.threads = i + 1;
  }
  return pool.threads;
}

void stop_threads() noexcept {
  if (pool.threads == 1) return;
  pool.quit.store(true, std::memory_order_release);
  pool.jobs.fetch_add(1);
  wake_all(pool.jobs);
  for (std::int32_t i = 1; i < pool.threads; ++i) pthread_join(pool.handles[i], nullptr);
  pool.threads = 1;
}

std::int32_t thread_count() noexcept { return pool.threads; }

bool threads_ready() noexcept { return pool.ready.load() == pool.threads - 1; }

void parallel_for(std::int32_t num_items, double work, void (*fn)(void* context, std::int32_t item, std::int32_t thread),
                  void* context) noexcept {
  if (pool.threads == 1 || num_items < 2 || work < kSmallWork) {
    for (std::int32_t item = 0; item < num_items; ++item) fn(context, item, 0);
    return;
  }
  pool.num_items = num_items;
  pool.fn = fn;
  pool.context = context;
  pool.next.store(0, std::memory_order_relaxed);
  pool.gate.store(kOpen, std::memory_order_release);
  pool.jobs.fetch_add(1, std::memory_order_release);
  wake_all(pool.jobs);
  take_items(0);
  pool.gate.fetch_and(~kOpen, std::memory_order_acq_rel);
  // Mostly a short wait: the others are on their last item. On a busy machine one of them may have lost its core, and needs ours.
  for (int spin = 0;; ++spin) {
    const std::uint32_t inside = pool.gate.load(std::memory_order_acquire);
    if (inside == 0) return;
    if (pool.may_block && spin >= kSpins) {
      sleep_while(pool.gate, inside);
    } else {
      pause_briefly();
    }
  }
}

#endif

}  // namespace attn
