// Whether views share memory. Exact for the layouts there are in practice, column slices of one
// buffer among them; where the answer would take long, it is "yes".
#pragma once

#include "chunkscan/tensor.h"

namespace chunkscan {

// Views need data, and extents below 2^60 bytes.
bool may_overlap(const TensorView& a, const TensorView& b);

// True where two indices may lead to the same memory.
bool may_overlap_itself(const TensorView& view);

}  // namespace chunkscan
