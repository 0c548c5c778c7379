#include "attn/projection.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "attn/parallel.h"
#include "kernels/half.hpp"
#include "kernels/matrix_panel.hpp"

namespace attn {
namespace {

using Arch = kernels::DefaultArch;
constexpr int kP = kernels::kPanel<Arch>;
template <int N>
using Count = std::integral_constant<int, N>;

/// Inputs that are summed before going to the next panel: two panels of weights of this depth take 24 KiB and stay in L1 for all rows.
constexpr int kDepth = 384;
/// Rows that one item takes: with their inputs they stay in L2 while the panels go by.
constexpr int kRowBlock = 128;
/// Panels that one item takes.
constexpr int kPanelBlock = 16;

std::int32_t panels_of(std::int32_t group_dim) { return (group_dim + kP - 1) / kP; }

/// Floats of one packed panel: bias and weights.
std::ptrdiff_t panel_floats(std::int32_t in_dim) { return static_cast<std::ptrdiff_t>(in_dim + 1) * kP; }

float element(const MatrixView& w, std::ptrdiff_t index) {
  switch (w.type) {
    case WeightType::f32: return static_cast<const float*>(w.data)[index];
    case WeightType::f16: return kernels::half_to_float_one(static_cast<const std::uint16_t*>(w.data)[index]);
    case WeightType::bf16: break;
  }
  const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(w.data)[index]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The last panel of a group whose width is no multiple of kPanel: through a buffer, since a whole panel would overwrite its neighbour.
template <int Rows>
void narrow_block(const ProjectionParams& p, const float* x, const float* panel, int width, float* y) {
  float sums[Rows * kP] = {};
  kernels::panel_block<Arch, Rows, 1>(x, p.x_row_stride, panel + kP, 0, p.in_dim, panel, sums, kP);
  for (int r = 0; r < Rows; ++r) std::copy_n(sums + r * kP, width, y + r * p.y_row_stride);
}

/// A row alone: as many panels at once as keep the sums in registers, so that the weights are read at memory speed.
void one_row(const ProjectionParams& p, const float* x, const float* panel, int whole_panels, float* y) {
  const std::ptrdiff_t stride = panel_floats(p.in_dim);
  const auto panels = [&]<int Panels>(Count<Panels>, int j) {
    const float* from = panel + j * stride;
    kernels::panel_block<Arch, 1, Panels>(x, p.x_row_stride, from + kP, stride, p.in_dim, from, y + j * kP, p.y_row_stride);
  };
  int j = 0;
  for (; j + 3 <= whole_panels; j += 3) panels(Count<3>{}, j);
  for (; j < whole_panels; ++j) panels(Count<1>{}, j);
}

template <int Rows>
void narrow_rows(const ProjectionParams& p, const float* x, const float* panel, int width, float* y) {
  if (width > 0) narrow_block<Rows>(p, x, panel, width, y);
}

/// `count` rows times panels [first, last) of one group.
void multiply(const ProjectionParams& p, const float* x, int count, const float* group, std::int32_t first, std::int32_t last, float* y) {
  const std::ptrdiff_t stride = panel_floats(p.in_dim);
  const std::int32_t whole = std::min(last, p.group_dim / kP);
  const int whole_panels = std::max(0, whole - first);
  const int width = last > p.group_dim / kP ? p.group_dim % kP : 0;
  const float* panels = group + first * stride;
  y += static_cast<std::ptrdiff_t>(first) * kP;
  const int even = count / 2 * 2;

  // Two panels at a time, each pair over all pairs of rows, so that it is read from L1 after its first use.
  for (int i = 0; count > 1 && i < p.in_dim; i += kDepth) {
    const int depth = std::min(kDepth, p.in_dim - i);
    const auto block = [&]<int Rows, int Panels>(Count<Rows>, Count<Panels>, int j, int r) {
      const float* panel = panels + j * stride;
      kernels::panel_block<Arch, Rows, Panels>(x + r * p.x_row_stride + i, p.x_row_stride, panel + kP + static_cast<std::ptrdiff_t>(i) * kP,
                                               stride, depth, i == 0 ? panel : nullptr, y + r * p.y_row_stride + j * kP, p.y_row_stride);
    };
    int j = 0;
    for (; j + 2 <= whole_panels; j += 2) {
      for (int r = 0; r < even; r += 2) block(Count<2>{}, Count<2>{}, j, r);
      if (even < count) block(Count<1>{}, Count<2>{}, j, even);
    }
    if (j < whole_panels) {
      for (int r = 0; r < even; r += 2) block(Count<2>{}, Count<1>{}, j, r);
      if (even < count) block(Count<1>{}, Count<1>{}, j, even);
    }
  }
  if (count == 1) one_row(p, x, panels, whole_panels, y);
  const float* const narrow = panels + whole_panels * stride;
  for (int r = 0; r < even; r += 2) narrow_rows<2>(p, x + r * p.x_row_stride, narrow, width, y + r * p.y_row_stride + whole_panels * kP);
  if (even < count) narrow_rows<1>(p, x + even * p.x_row_stride, narrow, width, y + even * p.y_row_stride + whole_panels * kP);
}

/// Items are (batch row, block of rows, group, block of panels).
struct Job {
  const ProjectionParams& params;
  std::int32_t row_blocks;
  std::int32_t panel_blocks;
};

void run_item(void* context, std::int32_t item, std::int32_t /*thread*/) {
  const Job& job = *static_cast<const Job*>(context);
  const ProjectionParams& p = job.params;
  const std::int32_t panel_block = item % job.panel_blocks;
  item /= job.panel_blocks;
  const std::int32_t group = item % p.num_groups;
  item /= p.num_groups;
  const std::int32_t row = item % job.row_blocks * kRowBlock;
  const std::int32_t batch = item / job.row_blocks;
  const std::int32_t panels = panels_of(p.group_dim);
  const std::int32_t first = panel_block * kPanelBlock;
  const float* packed = p.packed + static_cast<std::ptrdiff_t>(group) * panels * panel_floats(p.in_dim);
  multiply(p, p.x + batch * p.x_batch_stride + row * p.x_row_stride, std::min(kRowBlock, p.rows - row), packed, first,
           std::min(first + kPanelBlock, panels), p.y + batch * p.y_batch_stride + row * p.y_row_stride + group * p.y_group_stride);
}

}  // namespace

std::size_t packed_elements(std::int32_t num_groups, std::int32_t group_dim, std::int32_t in_dim) noexcept {
  if (num_groups <= 0 || group_dim <= 0 || in_dim <= 0) return 0;
  const double floats = static_cast<double>(num_groups) * panels_of(group_dim) * kP * (static_cast<double>(in_dim) + 1);
  if (floats > static_cast<double>(std::numeric_limits<std::int32_t>::max()) / sizeof(float) * 2) return 0;
  return static_cast<std::size_t>(floats);
}

Status pack_matrix(const MatrixView& weight, const float* bias, float* packed) noexcept {
  if (packed_elements(weight.num_groups, weight.group_dim, weight.in_dim) == 0) return Status::invalid_shape;
  const auto type = static_cast<std::int32_t>(weight.type);
  if (type < 0 || type > 2) return Status::invalid_option;
  if (weight.data == nullptr || packed == nullptr) return Status::missing_pointer;
  for (std::int32_t g = 0; g < weight.num_groups; ++g) {
    for (std::int32_t first = 0; first < weight.group_dim; first += kP) {
      const int width = std::min(kP, weight.group_dim - first);
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(g) * weight.group_dim + first;
      for (int c = 0; c < kP; ++c) packed[c] = c < width && bias != nullptr ? bias[row + c] : 0.0F;
      packed += kP;
      for (std::int32_t i = 0; i < weight.in_dim; ++i) {
        for (int c = 0; c < width; ++c) packed[c] = element(weight, (row + c) * weight.out_stride + i * weight.in_stride);
        for (int c = width; c < kP; ++c) packed[c] = 0.0F;
        packed += kP;
      }
    }
  }
  return Status::ok;
}

Status project(const ProjectionParams& p) noexcept {
  if (p.batch_size < 0 || p.rows < 0 || packed_elements(p.num_groups, p.group_dim, p.in_dim) == 0) return Status::invalid_shape;
  if (p.batch_size == 0 || p.rows == 0) return Status::ok;
  if (p.x == nullptr || p.packed == nullptr || p.y == nullptr) return Status::missing_pointer;
  const Job job{p, (p.rows + kRowBlock - 1) / kRowBlock, (panels_of(p.group_dim) + kPanelBlock - 1) / kPanelBlock};
  const double items = static_cast<double>(p.batch_size) * job.row_blocks * p.num_groups * job.panel_blocks;
  if (items > static_cast<double>(std::numeric_limits<std::int32_t>::max())) return Status::invalid_shape;
  const double work = static_cast<double>(p.batch_size) * p.rows * p.num_groups * p.group_dim * p.in_dim;
  parallel_for(static_cast<std::int32_t>(items), work, run_item, const_cast<Job*>(&job));
  return Status::ok;
}

}  // namespace attn
