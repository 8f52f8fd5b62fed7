// What a GPU may move at a time.
#pragma once

#include <cstdint>

#include "chunkscan/ssd.h"

namespace chunkscan {

// Bytes that a tensor's address and strides are multiples of, 16 at most. 0 where its last
// dimension is not contiguous, where a stride is negative, or where a dimension is broadcast.
struct Alignment {
  std::uint8_t x = 16, B = 16, C = 16, z = 16, y = 16;

  // Whether what was made for tensors of alignment `planned` serves these.
  bool serves(const Alignment& planned) const {
    return x >= planned.x && B >= planned.B && C >= planned.C && z >= planned.z && y >= planned.y;
  }
  friend bool operator==(const Alignment&, const Alignment&) = default;
};

// A view without memory counts as one at an aligned address.
Alignment alignment_of(const Inputs& inputs, const Outputs& outputs);

}  // namespace chunkscan
