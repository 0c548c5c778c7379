#include "attn/projection.h"

#include <emscripten/bind.h>

#include <cstdint>

#include "bindings/projection_block.h"

namespace attn::bindings {
namespace {

std::int32_t pack(Pointer address) {
  const auto& b = *as<const PackBlock>(address);
  MatrixView view;
  view.data = as<const void>(b.data);
  view.type = static_cast<WeightType>(b.type);
  view.num_groups = b.num_groups;
  view.group_dim = b.group_dim;
  view.in_dim = b.in_dim;
  view.out_stride = b.out_stride;
  view.in_stride = b.in_stride;
  return static_cast<std::int32_t>(pack_matrix(view, as<const float>(b.bias), as<float>(b.packed)));
}

std::int32_t run(Pointer address) {
  const auto& b = *as<const ProjectionBlock>(address);
  ProjectionParams p;
  p.x = as<const float>(b.x);
  p.x_batch_stride = b.x_batch_stride;
  p.x_row_stride = b.x_row_stride;
  p.packed = as<const float>(b.packed);
  p.y = as<float>(b.y);
  p.y_batch_stride = b.y_batch_stride;
  p.y_row_stride = b.y_row_stride;
  p.y_group_stride = b.y_group_stride;
  p.batch_size = b.batch_size;
  p.rows = b.rows;
  p.num_groups = b.num_groups;
  p.group_dim = b.group_dim;
  p.in_dim = b.in_dim;
  return static_cast<std::int32_t>(project(p));
}

// A double, because size_t would come out as a signed number beyond 2^31.
double count_packed(std::int32_t num_groups, std::int32_t group_dim, std::int32_t in_dim) {
  return static_cast<double>(packed_elements(num_groups, group_dim, in_dim));
}

std::int32_t block_bytes() { return sizeof(ProjectionBlock); }

}  // namespace

EMSCRIPTEN_BINDINGS(projection) {
  emscripten::function("projectionBlockBytes", &block_bytes);
  emscripten::function("packedElements", &count_packed);
  emscripten::function("packMatrix", &pack);
  emscripten::function("project", &run);
}

}  // namespace attn::bindings
