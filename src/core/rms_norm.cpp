#include "attn/rms_norm.h"

#include "attn/parallel.h"
#include "core/sizes.h"
#include "kernels/rms_norm.hpp"

namespace attn {
namespace {

void run_head(void* context, std::int32_t item, std::int32_t /*thread*/) {
  const RmsNormParams& p = *static_cast<const RmsNormParams*>(context);
  float* x = p.x + item / p.num_heads * p.strides.batch + item % p.num_heads * p.strides.head;
  for (std::int32_t t = 0; t < p.seq_len; ++t) {
    kernels::rms_norm_row<kernels::DefaultArch>(x + t * p.strides.row, p.weight, p.head_dim, p.epsilon);
  }
}

}  // namespace

Status rms_norm(const RmsNormParams& p) noexcept {
  if (p.batch_size < 0 || p.num_heads < 0 || p.seq_len < 0 || p.head_dim < 0) return Status::invalid_shape;
  if (!core::addressable({p.batch_size, p.num_heads, p.seq_len, p.head_dim})) return Status::invalid_shape;
  if (!(p.epsilon >= 0.0F)) return Status::invalid_option;
  if (p.batch_size == 0 || p.num_heads == 0 || p.seq_len == 0 || p.head_dim == 0) return Status::ok;
  if (p.x == nullptr || p.weight == nullptr) return Status::missing_pointer;
  const double work = static_cast<double>(p.batch_size) * p.num_heads * p.seq_len * p.head_dim;
  parallel_for(p.batch_size * p.num_heads, work, run_head, const_cast<RmsNormParams*>(&p));
  return Status::ok;
}

}  // namespace attn
