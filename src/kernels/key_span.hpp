#pragma once

namespace attn::kernels {

/// Keys of a tile that a panel of queries has to do with: [first, last), counted from the first key of the tile. Scores and weights outside may
/// be anything; the softmax and the weighted sum do not read them.
struct KeySpan {
  int first;
  int last;
};

}  // namespace attn::kernels
