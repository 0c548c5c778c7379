// Threads: every item once, and results that do not depend on their number. Without ATTN_THREADS the same calls run on one thread.

#include "attn/parallel.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "attn/projection.h"
#include "support/compare.h"

using namespace attn;
using namespace attn::test;

namespace {

#if defined(ATTN_THREADS)
constexpr bool kThreads = true;
#else
constexpr bool kThreads = false;
#endif

constexpr double kMuchWork = 1e12;  // keeps nothing on the calling thread

struct Visits {
  explicit Visits(int items) : count(static_cast<std::size_t>(items)) {}
  std::vector<std::atomic<int>> count;
  std::atomic<int> wrong_thread{0};

  void run(double work) {
    const auto visit = [](void* context, std::int32_t item, std::int32_t thread) {
      auto& self = *static_cast<Visits*>(context);
      if (thread < 0 || thread >= thread_count()) ++self.wrong_thread;
      ++self.count[static_cast<std::size_t>(item)];
    };
    parallel_for(static_cast<std::int32_t>(count.size()), work, visit, this);
  }
  [[nodiscard]] bool each_once() const {
    for (const auto& n : count) {
      if (n != 1) return false;
    }
    return wrong_thread == 0;
  }
};

/// Stops what it started, also when a test fails.
struct Threads {
  explicit Threads(int wanted) : number(start_threads(wanted)) {}
  ~Threads() { stop_threads(); }
  Threads(const Threads&) = delete;
  int number;
};

}  // namespace

TEST_CASE("without start everything runs on the calling thread", "[parallel]") {
  stop_threads();
  CHECK(thread_count() == 1);
  CHECK(threads_ready());
  for (const int items : {0, 1, 7, 1000}) {
    Visits visits(items);
    visits.run(kMuchWork);
    CHECK(visits.each_once());
  }
}

TEST_CASE("each item is done once, on a thread that exists", "[parallel]") {
  for (const int wanted : {1, 2, 3, 4}) {
    const Threads threads(wanted);
    CHECK(threads.number == (kThreads ? wanted : 1));
    CHECK(thread_count() == threads.number);
    for (const int items : {0, 1, 2, 3, 5, 100, 1000}) {
      for (const double work : {0.0, kMuchWork}) {
        for (int again = 0; again < 20; ++again) {
          Visits visits(items);
          visits.run(work);
          CHECK(visits.each_once());
        }
      }
    }
  }
  CHECK(thread_count() == 1);
}

TEST_CASE("numbers of threads that make no sense give one thread", "[parallel]") {
  for (const int wanted : {0, -1, -100}) {
    const Threads threads(wanted);
    CHECK(threads.number == 1);
    Visits visits(10);
    visits.run(kMuchWork);
    CHECK(visits.each_once());
  }
}

TEST_CASE("attention gives the same bits on 1, 2, 3 and 4 threads", "[parallel][attention]") {
  Random random("attention on threads");
  std::vector<Problem> problems;
  // prefill with packed values, decode in chunks, decode with groups, matrices; each large enough to be shared out
  problems.push_back(Problem({.batch = 2, .heads = 3, .kv_heads = 3, .seq_q = 210, .seq_k = 200, .head_dim = 32, .value_dim = 32}));
  problems.push_back(Problem({.batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 1, .seq_k = 9000, .head_dim = 64, .value_dim = 64}));
  problems.push_back(Problem({.batch = 1, .heads = 8, .kv_heads = 2, .seq_q = 2, .seq_k = 3000, .head_dim = 32, .value_dim = 48}));
  problems.push_back(Problem({.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 70, .seq_k = 140, .head_dim = 16, .value_dim = 16}));
  for (Problem& p : problems) {
    p.fill_random(random);
    p.options.causal = true;
    p.options.query_offset = p.shape.seq_k - p.shape.seq_q;
  }
  problems[3].want_matrix(MatrixStage::weights, {}, true);
  for (Problem& p : problems) check_against_reference(p);
  for (const int wanted : {2, 3, 4}) {
    const Threads threads(wanted);
    for (Problem& one : problems) {
      Problem many = one;
      many.run();
      INFO("threads " << wanted);
      CHECK(same_bits(one, many));
    }
  }
}

TEST_CASE("projection gives the same bits on 1, 2, 3 and 4 threads", "[parallel][projection]") {
  Random random("projection on threads");
  const int rows = 150;
  const int in_dim = 256;
  const int out_dim = 256;
  std::vector<float> weight(static_cast<std::size_t>(out_dim * in_dim));
  for (float& w : weight) w = random.real(-1, 1);
  std::vector<float> x(static_cast<std::size_t>(rows * in_dim));
  for (float& value : x) value = random.real(-1, 1);
  std::vector<float> packed(packed_elements(4, out_dim / 4, in_dim) + 4);
  auto* aligned = reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(packed.data()) + 15) / 16 * 16);
  REQUIRE(pack_matrix({weight.data(), WeightType::f32, 4, out_dim / 4, in_dim, in_dim, 1}, nullptr, aligned) == Status::ok);
  const auto run = [&] {
    std::vector<float> y(static_cast<std::size_t>(rows * out_dim));
    ProjectionParams p;
    p.x = x.data();
    p.x_row_stride = in_dim;
    p.packed = aligned;
    p.y = y.data();
    p.y_row_stride = out_dim;
    p.y_group_stride = out_dim / 4;
    p.batch_size = 1;
    p.rows = rows;
    p.num_groups = 4;
    p.group_dim = out_dim / 4;
    p.in_dim = in_dim;
    REQUIRE(project(p) == Status::ok);
    return y;
  };
  const std::vector<float> one = run();
  for (const int wanted : {2, 3, 4}) {
    const Threads threads(wanted);
    CHECK(run() == one);
  }
}
