#include "attn/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "attn/parallel.h"
#include "core/sizes.h"
#include "kernels/half.hpp"
#include "kernels/rotary.hpp"

namespace attn {
namespace {

using Arch = kernels::DefaultArch;

std::ptrdiff_t element_bytes(KvType type) { return type == KvType::f16 ? 2 : 4; }

Status check_cache(const KvCache& c) {
  if (c.batch_size < 0 || c.num_kv_heads < 0 || c.capacity < 0 || c.head_dim < 0 || c.value_dim < 0) return Status::invalid_shape;
  if (!core::addressable({c.batch_size, c.num_kv_heads, c.capacity, std::max(c.head_dim, c.value_dim)})) return Status::invalid_shape;
  if (c.type != KvType::f32 && c.type != KvType::f16) return Status::invalid_option;
  if (c.start < 0 || c.start > c.capacity) return Status::invalid_option;
  if (c.batch_size > 0 && c.num_kv_heads > 0 && c.capacity > 0) {
    if (c.head_dim > 0 && c.key == nullptr) return Status::missing_pointer;
    if (c.value_dim > 0 && c.value == nullptr) return Status::missing_pointer;
  }
  return Status::ok;
}

Status check_lengths(const KvCache& c) {
  if (c.batch_size > 0 && c.lengths == nullptr) return Status::missing_pointer;
  for (std::int32_t b = 0; b < c.batch_size; ++b) {
    if (c.lengths[b] < 0 || c.lengths[b] > c.capacity - c.start) return Status::invalid_option;
  }
  return Status::ok;
}

/// First byte of row `row` of one head, of keys or of values.
std::byte* row_of(void* data, const Strides& strides, KvType type, std::int32_t batch, std::int32_t head, std::ptrdiff_t row) {
  return static_cast<std::byte*>(data) + (batch * strides.batch + head * strides.head + row * strides.row) * element_bytes(type);
}

template <class T, class U>
void append_head(const KvAppendParams& p, std::int32_t b, std::int32_t h) {
  const KvCache& c = p.cache;
  const Strides to_key = key_strides(c);
  const Strides to_value = value_strides(c);
  const std::int32_t count = p.new_lengths != nullptr ? p.new_lengths[b] : p.seq_len;
  const T* key = static_cast<const T*>(p.key) + b * p.key_strides.batch + h * p.key_strides.head;
  const T* value = static_cast<const T*>(p.value) + b * p.value_strides.batch + h * p.value_strides.head;
  auto* cache_key = reinterpret_cast<U*>(row_of(c.key, to_key, c.type, b, h, c.start + c.lengths[b]));
  auto* cache_value = reinterpret_cast<U*>(row_of(c.value, to_value, c.type, b, h, c.start + c.lengths[b]));
  const std::int32_t half = p.rotary.rotary_dim / 2;
  for (std::int32_t t = 0; t < count; ++t) {
    if (p.rotary.cos != nullptr) {
      const std::ptrdiff_t row = p.positions.rows != nullptr ? p.positions.rows[b * p.positions.batch_stride + t] : t;
      kernels::rotate_row<Arch>(key + t * p.key_strides.row, cache_key + t * to_key.row, p.rotary.cos + row * half,
                                p.rotary.sin + row * half, p.rotary.rotary_dim, p.rotary.interleaved, c.head_dim);
    } else {
      kernels::copy_kv_row<Arch>(key + t * p.key_strides.row, cache_key + t * to_key.row, c.head_dim);
    }
    kernels::copy_kv_row<Arch>(value + t * p.value_strides.row, cache_value + t * to_value.row, c.value_dim);
  }
  if constexpr (std::is_same_v<U, std::uint16_t>) {
    if (p.finite != nullptr && !(kernels::all_finite<Arch>(cache_key, to_key.row, count, c.head_dim) &&
                                 kernels::all_finite<Arch>(cache_value, to_value.row, count, c.value_dim))) {
      __atomic_store_n(p.finite, 0, __ATOMIC_RELAXED);  // by several threads at once; libc++ lacks std::atomic_ref
    }
  }
}

void append_item(void* context, std::int32_t item, std::int32_t /*thread*/) {
  const KvAppendParams& p = *static_cast<const KvAppendParams*>(context);
  const std::int32_t b = item / p.cache.num_kv_heads;
  const std::int32_t h = item % p.cache.num_kv_heads;
  if (p.cache.type == KvType::f32) {
    if (p.source_type == KvType::f32) {
      append_head<float, float>(p, b, h);
    } else {
      append_head<std::uint16_t, float>(p, b, h);
    }
  } else {
    if (p.source_type == KvType::f32) {
      append_head<float, std::uint16_t>(p, b, h);
    } else {
      append_head<std::uint16_t, std::uint16_t>(p, b, h);
    }
  }
}

/// Rows of one batch row, counted from the start of the memory.
struct Rows {
  std::int32_t batch;
  std::int32_t first;
};

/// `count` rows of each head: fn(target bytes, source bytes, size), for keys and for values.
template <class Fn>
void for_rows(const KvCache& from, Rows source, const KvCache& to, Rows target, std::int32_t count, Fn fn) {
  for (std::int32_t h = 0; h < from.num_kv_heads; ++h) {
    fn(row_of(to.key, key_strides(to), to.type, target.batch, h, target.first),
       row_of(from.key, key_strides(from), from.type, source.batch, h, source.first),
       static_cast<std::size_t>(count * from.head_dim * element_bytes(from.type)));
    fn(row_of(to.value, value_strides(to), to.type, target.batch, h, target.first),
       row_of(from.value, value_strides(from), from.type, source.batch, h, source.first),
       static_cast<std::size_t>(count * from.value_dim * element_bytes(from.type)));
  }
}

void move_bytes(std::byte* target, const std::byte* source, std::size_t size) {
  if (size > 0) std::memmove(target, source, size);
}

void swap_bytes(std::byte* a, std::byte* b, std::size_t size) { std::swap_ranges(a, a + size, b); }

}  // namespace

Strides key_strides(const KvCache& c) noexcept {
  const std::ptrdiff_t head = static_cast<std::ptrdiff_t>(c.capacity) * c.head_dim;
  return {c.num_kv_heads * head, head, c.head_dim};
}

Strides value_strides(const KvCache& c) noexcept {
  const std::ptrdiff_t head = static_cast<std::ptrdiff_t>(c.capacity) * c.value_dim;
  return {c.num_kv_heads * head, head, c.value_dim};
}

Status kv_cache_append(const KvAppendParams& p) noexcept {
  const KvCache& c = p.cache;
  Status status = check_cache(c);
  if (status != Status::ok) return status;
  if (p.seq_len < 0 || !core::addressable({c.batch_size, c.num_kv_heads, p.seq_len, std::max(c.head_dim, c.value_dim)})) {
    return Status::invalid_shape;
  }
  if (p.source_type != KvType::f32 && p.source_type != KvType::f16) return Status::invalid_option;
  status = check_lengths(c);
  if (status != Status::ok) return status;
  for (std::int32_t b = 0; b < c.batch_size; ++b) {
    const std::int32_t count = p.new_lengths != nullptr ? p.new_lengths[b] : p.seq_len;
    if (count < 0 || count > p.seq_len || count > c.capacity - c.start - c.lengths[b]) return Status::invalid_option;
  }
  if (c.batch_size == 0 || c.num_kv_heads == 0 || p.seq_len == 0) return Status::ok;
  if ((c.head_dim > 0 && p.key == nullptr) || (c.value_dim > 0 && p.value == nullptr)) return Status::missing_pointer;
  if (p.rotary.cos != nullptr) {
    status = check_rotary(p.rotary, c.head_dim);
    if (status == Status::ok) status = check_positions(p.rotary, p.positions, c.batch_size, p.seq_len);
    if (status != Status::ok) return status;
  }
  const double work = static_cast<double>(c.batch_size) * c.num_kv_heads * p.seq_len * (c.head_dim + c.value_dim);
  parallel_for(c.batch_size * c.num_kv_heads, work, append_item, const_cast<KvAppendParams*>(&p));
  return Status::ok;
}

Status kv_cache_drop_front(const KvCache& c, const std::int32_t* first) noexcept {
  Status status = check_cache(c);
  if (status == Status::ok) status = check_lengths(c);
  if (status != Status::ok) return status;
  if (c.batch_size > 0 && first == nullptr) return Status::missing_pointer;
  for (std::int32_t b = 0; b < c.batch_size; ++b) {
    if (first[b] < 0 || first[b] > c.lengths[b]) return Status::invalid_option;
  }
  for (std::int32_t b = 0; b < c.batch_size; ++b) {
    for_rows(c, {b, c.start + first[b]}, c, {b, 0}, c.lengths[b] - first[b], move_bytes);
  }
  return Status::ok;
}

Status kv_cache_reorder(const KvCache& c, const std::int32_t* sources, std::int32_t* scratch) noexcept {
  Status status = check_cache(c);
  if (status == Status::ok) status = check_lengths(c);
  if (status != Status::ok) return status;
  if (c.batch_size > 0 && (sources == nullptr || scratch == nullptr)) return Status::missing_pointer;
  for (std::int32_t b = 0; b < c.batch_size; ++b) {
    if (sources[b] < 0 || sources[b] >= c.batch_size) return Status::invalid_option;
  }
  // A row may be overwritten once nobody else still wants to read it. What is left in the end are cycles, which are swapped along.
  std::int32_t* readers = scratch;                 // how many rows still have to be copied from this one
  std::int32_t* pending = scratch + c.batch_size;  // where this row's new contents come from; itself when done
  std::fill_n(readers, c.batch_size, 0);
  for (std::int32_t b = 0; b < c.batch_size; ++b) {
    pending[b] = sources[b];
    if (sources[b] != b) ++readers[sources[b]];
  }
  for (std::int32_t start = 0; start < c.batch_size; ++start) {
    for (std::int32_t b = start; pending[b] != b && readers[b] == 0;) {
      const std::int32_t source = pending[b];
      for_rows(c, {source, c.start}, c, {b, c.start}, c.lengths[source], move_bytes);
      pending[b] = b;
      --readers[source];
      b = source;
    }
  }
  const std::int32_t longest = c.batch_size > 0 ? *std::max_element(c.lengths, c.lengths + c.batch_size) : 0;
  for (std::int32_t start = 0; start < c.batch_size; ++start) {
    // a <- b <- c <- a: swapping a with b makes a right, and b takes over a's place in the cycle, until the last row finds itself right.
    std::int32_t b = start;
    while (pending[b] != start) {
      const std::int32_t source = pending[b];
      for_rows(c, {source, c.start}, c, {b, c.start}, longest, swap_bytes);
      pending[b] = b;
      b = source;
    }
    pending[b] = b;
  }
  return Status::ok;
}

Status kv_cache_copy(const KvCache& from, const KvCache& to) noexcept {
  Status status = check_cache(from);
  if (status == Status::ok) status = check_cache(to);
  if (status == Status::ok) status = check_lengths(from);
  if (status != Status::ok) return status;
  if (from.batch_size != to.batch_size || from.num_kv_heads != to.num_kv_heads || from.head_dim != to.head_dim ||
      from.value_dim != to.value_dim || from.type != to.type) {
    return Status::invalid_shape;
  }
  for (std::int32_t b = 0; b < from.batch_size; ++b) {
    if (from.lengths[b] > to.capacity - to.start) return Status::invalid_shape;
  }
  for (std::int32_t b = 0; b < from.batch_size; ++b) for_rows(from, {b, from.start}, to, {b, to.start}, from.lengths[b], move_bytes);
  return Status::ok;
}

}  // namespace attn
