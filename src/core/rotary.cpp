#include "attn/rotary.h"

#include "attn/parallel.h"
#include "core/sizes.h"
#include "kernels/rotary.hpp"

namespace attn {
namespace {

using Arch = kernels::DefaultArch;

void run_head(void* context, std::int32_t item, std::int32_t /*thread*/) {
  const RotaryParams& p = *static_cast<const RotaryParams*>(context);
  const std::int32_t head = item % p.num_heads;
  const std::int32_t batch = item / p.num_heads;
  const std::int32_t half = p.table.rotary_dim / 2;
  for (std::int32_t t = 0; t < p.seq_len; ++t) {
    const std::ptrdiff_t row = p.positions.rows != nullptr ? p.positions.rows[batch * p.positions.batch_stride + t] : t;
    kernels::rotate_row<Arch>(p.x + batch * p.x_strides.batch + head * p.x_strides.head + t * p.x_strides.row,
                              p.y + batch * p.y_strides.batch + head * p.y_strides.head + t * p.y_strides.row, p.table.cos + row * half,
                              p.table.sin + row * half, p.table.rotary_dim, p.table.interleaved, p.head_dim);
  }
}

}  // namespace

Status check_rotary(const RotaryTable& table, std::int32_t head_dim) noexcept {
  if (table.rotary_dim < 0 || table.rotary_dim % 2 != 0 || table.rotary_dim > head_dim || table.num_rows < 0) return Status::invalid_shape;
  if (table.rotary_dim > 0 && table.num_rows > 0 && (table.cos == nullptr || table.sin == nullptr)) return Status::missing_pointer;
  return Status::ok;
}

Status check_positions(const RotaryTable& table, const RotaryPositions& positions, std::int32_t batch_size, std::int32_t seq_len) noexcept {
  if (positions.rows == nullptr) return seq_len <= table.num_rows || batch_size == 0 ? Status::ok : Status::invalid_option;
  const std::int32_t batch_rows = positions.batch_stride == 0 ? (batch_size > 0 ? 1 : 0) : batch_size;
  for (std::int32_t b = 0; b < batch_rows; ++b) {
    for (std::int32_t t = 0; t < seq_len; ++t) {
      const std::int32_t row = positions.rows[b * positions.batch_stride + t];
      if (row < 0 || row >= table.num_rows) return Status::invalid_option;
    }
  }
  return Status::ok;
}

Status rotary_embedding(const RotaryParams& p) noexcept {
  if (p.batch_size < 0 || p.num_heads < 0 || p.seq_len < 0 || p.head_dim < 0) return Status::invalid_shape;
  if (!core::addressable({p.batch_size, p.num_heads, p.seq_len, p.head_dim})) return Status::invalid_shape;
  Status status = check_rotary(p.table, p.head_dim);
  if (status != Status::ok) return status;
  if (p.batch_size == 0 || p.num_heads == 0 || p.seq_len == 0 || p.head_dim == 0) return Status::ok;
  status = check_positions(p.table, p.positions, p.batch_size, p.seq_len);
  if (status != Status::ok) return status;
  if (p.x == nullptr || p.y == nullptr) return Status::missing_pointer;
  const double work = static_cast<double>(p.batch_size) * p.num_heads * p.seq_len * p.head_dim;
  parallel_for(p.batch_size * p.num_heads, work, run_head, const_cast<RotaryParams*>(&p));
  return Status::ok;
}

}  // namespace attn
