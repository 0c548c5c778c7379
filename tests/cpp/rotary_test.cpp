// Rotary positions: both pairings, partial rotation, positions by table.

#include "attn/rotary.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "reference/rotary_reference.h"
#include "support/problem.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

struct Tables {
  Tables(int rows, int rotary_dim) : cos(static_cast<std::size_t>(rows * rotary_dim / 2)), sin(cos.size()) {
    const int half = rotary_dim / 2;
    for (int p = 0; p < rows; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(10000.0, -static_cast<double>(i) / half);
        cos[static_cast<std::size_t>(p * half + i)] = static_cast<float>(std::cos(angle));
        sin[static_cast<std::size_t>(p * half + i)] = static_cast<float>(std::sin(angle));
      }
    }
    table.cos = cos.data();
    table.sin = sin.data();
    table.num_rows = rows;
    table.rotary_dim = rotary_dim;
  }
  Tables(const Tables&) = delete;
  std::vector<float> cos, sin;
  RotaryTable table;
};

void check_rotation(Random& random, int head_dim, int rotary_dim, bool interleaved, Layout layout, bool in_place, bool by_position) {
  const int batch = 2;
  const int heads = 3;
  const int seq_len = 5;
  Tables tables(20, rotary_dim);
  tables.table.interleaved = interleaved;
  const Placement place = Placement::of(layout, batch, heads, seq_len, head_dim);
  Buffer<float> x(place.elements);
  for (float& value : x) value = random.real(-1, 1);
  const Buffer<float> before = x;
  Buffer<float> y(place.elements);
  Buffer<std::int32_t> positions(by_position ? 10 : 0);
  for (std::int32_t& p : positions) p = random.integer(0, 19);

  RotaryParams p;
  p.x = x.data();
  p.y = in_place ? x.data() : y.data();
  p.x_strides = p.y_strides = place.strides;
  p.batch_size = batch;
  p.num_heads = heads;
  p.seq_len = seq_len;
  p.head_dim = head_dim;
  p.table = tables.table;
  p.positions.rows = positions.data();
  p.positions.batch_stride = by_position ? seq_len : 0;
  REQUIRE(rotary_embedding(p) == Status::ok);
  CHECK((x.intact() && y.intact()));
  if (!in_place) CHECK(x == before);

  bool good = true;
  for (int b = 0; b < batch; ++b) {
    for (int h = 0; h < heads; ++h) {
      for (int t = 0; t < seq_len; ++t) {
        const std::ptrdiff_t at = b * place.strides.batch + h * place.strides.head + t * place.strides.row;
        const std::vector<double> row(before.data() + at, before.data() + at + head_dim);
        const int position = by_position ? positions[static_cast<std::size_t>(b * seq_len + t)] : t;
        const std::ptrdiff_t table_row = std::ptrdiff_t{position} * (rotary_dim / 2);
        const auto want = reference::rotary_row(row, tables.table.cos + table_row, tables.table.sin + table_row, rotary_dim, interleaved);
        for (int i = 0; i < head_dim; ++i) {
          const double got = p.y[at + i];
          good = good && (i < rotary_dim ? std::fabs(got - want[static_cast<std::size_t>(i)]) <= 2 * kEpsilon
                                         : got == row[static_cast<std::size_t>(i)]);
        }
      }
    }
  }
  INFO("head_dim " << head_dim << ", rotary_dim " << rotary_dim << ", interleaved " << interleaved << ", in place " << in_place);
  CHECK(good);
}

}  // namespace

TEST_CASE("N22: position 1 turns (1, 0, 0, 0) by its angles, in either pairing; position 0 changes nothing", "[rotary]") {
  for (const bool interleaved : {false, true}) {
    Tables tables(2, 4);
    tables.table.interleaved = interleaved;
    const float x[8] = {1, 0, 0, 0, 1, 0, 0, 0};
    float y[8] = {};
    RotaryParams p;
    p.x = x;
    p.y = y;
    p.x_strides = p.y_strides = {8, 8, 4};
    p.batch_size = p.num_heads = 1;
    p.seq_len = 2;
    p.head_dim = 4;
    p.table = tables.table;
    REQUIRE(rotary_embedding(p) == Status::ok);
    for (int i = 0; i < 4; ++i) CHECK(y[i] == x[i]);
    CHECK(std::fabs(y[4] - 0.5403023F) < 1e-6F);
    CHECK(std::fabs(y[interleaved ? 5 : 6] - 0.8414710F) < 1e-6F);
    CHECK(y[interleaved ? 6 : 5] == 0.0F);
    CHECK(y[7] == 0.0F);
  }
}

TEST_CASE("every width 1..70 and every even part of it agrees with the reference", "[rotary]") {
  Random random("rotary widths");
  for (int head_dim = 1; head_dim <= 70; ++head_dim) {
    for (const int part : {0, head_dim / 4 * 2, head_dim / 2 * 2}) {
      const bool interleaved = random.chance(0.5);
      const Layout layout = random.pick({Layout::bhsd, Layout::bshd});
      check_rotation(random, head_dim, part, interleaved, layout, random.chance(0.5), random.chance(0.5));
      check_rotation(random, head_dim, part, !interleaved, layout, random.chance(0.5), random.chance(0.5));
    }
  }
  for (const int head_dim : {127, 128, 129, 256}) check_rotation(random, head_dim, 64, false, Layout::bhsd, true, true);
}

TEST_CASE("rotations that are refused write nothing", "[rotary][status]") {
  Tables tables(3, 4);
  Buffer<float> x(2 * 6);
  for (float& value : x) value = 1.0F;
  const Buffer<float> before = x;
  const auto run = [&](auto spoil) {
    RotaryParams p;
    p.x = p.y = x.data();
    p.x_strides = p.y_strides = {12, 12, 6};
    p.batch_size = p.num_heads = 1;
    p.seq_len = 2;
    p.head_dim = 6;
    p.table = tables.table;
    spoil(p);
    return rotary_embedding(p);
  };
  static const std::int32_t beyond[] = {0, 3};
  static const std::int32_t negative[] = {-1, 0};
  CHECK(run([](RotaryParams& p) { p.table.rotary_dim = 3; }) == Status::invalid_shape);
  CHECK(run([](RotaryParams& p) { p.table.rotary_dim = 8; }) == Status::invalid_shape);
  CHECK(run([](RotaryParams& p) { p.table.sin = nullptr; }) == Status::missing_pointer);
  CHECK(run([](RotaryParams& p) { p.positions.rows = beyond; }) == Status::invalid_option);
  CHECK(run([](RotaryParams& p) { p.positions.rows = negative; }) == Status::invalid_option);
  CHECK(run([](RotaryParams& p) { p.table.num_rows = 1; }) == Status::invalid_option);
  CHECK(run([](RotaryParams& p) { p.seq_len = -1; }) == Status::invalid_shape);
  CHECK(run([](RotaryParams& p) { p.x = nullptr; }) == Status::missing_pointer);
  CHECK(x == before);
  CHECK(run([](RotaryParams& p) { p.seq_len = 0; }) == Status::ok);
}
