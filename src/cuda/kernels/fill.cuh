// Writes one value to a vector: shows that the road from source to launch is whole.
#pragma once

namespace chunkscan {

struct FillParams {
  float* out;  // (size)
  float value;
  unsigned size;
};

template <int kPerThread>
__device__ void fill(const FillParams& params) {
  const unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) * kPerThread;
  for (unsigned i = first; i < first + kPerThread && i < params.size; ++i) {
    params.out[i] = params.value;
  }
}

}  // namespace chunkscan
