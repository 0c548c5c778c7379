#pragma once

#include <cstddef>
#include <cstdint>

#include "bindings/abi.h"

namespace attn::bindings {

/// attn::MatrixView with its bias and target as words, for `packMatrix`. Pointers are addresses, 0 = none. Strides count elements.
struct PackBlock {
  Pointer data;
  std::int32_t type;
  std::int32_t num_groups;
  std::int32_t group_dim;
  std::int32_t in_dim;
  std::int32_t out_stride;
  std::int32_t in_stride;
  Pointer bias;
  Pointer packed;
};

/// attn::ProjectionParams as words, for `project`.
struct ProjectionBlock {
  Pointer x;
  std::int32_t x_batch_stride;
  std::int32_t x_row_stride;
  Pointer packed;
  Pointer y;
  std::int32_t y_batch_stride;
  std::int32_t y_row_stride;
  std::int32_t y_group_stride;
  std::int32_t batch_size;
  std::int32_t rows;
  std::int32_t num_groups;
  std::int32_t group_dim;
  std::int32_t in_dim;
};

static_assert(sizeof(PackBlock) == 9 * sizeof(std::uint32_t), "a block is a list of 4-byte words without gaps");
static_assert(sizeof(ProjectionBlock) == 13 * sizeof(std::uint32_t), "a block is a list of 4-byte words without gaps");

}  // namespace attn::bindings
