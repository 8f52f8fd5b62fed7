// Where the tensors of one call are: addresses and strides, in elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "chunkscan/ssd.h"

namespace chunkscan {

struct Array {
  std::byte* data = nullptr;
  std::int64_t element_bytes = 0;
  std::array<std::int64_t, kMaxRank> strides = {};

  explicit operator bool() const { return data != nullptr; }

  // Address of element [i0, i1, ...]; indices left out are 0.
  std::byte* at(std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0, std::int64_t i3 = 0,
                std::int64_t i4 = 0) const {
    return data + element_bytes * (i0 * strides[0] + i1 * strides[1] + i2 * strides[2] +
                                   i3 * strides[3] + i4 * strides[4]);
  }
};

// The letters and shapes of chunkscan/ssd.h. An absent tensor is an Array without data.
struct Buffers {
  Array x, dt, A, B, C, D, z, dt_bias, initial_states, seq_idx, cu_seqlens;
  Array y, final_states, chunk_states, log_decay;
};

Buffers buffers_of(const Inputs& inputs, const Outputs& outputs);

}  // namespace chunkscan
