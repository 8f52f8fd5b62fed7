// Tiles in shared memory and the ring that fills them.
#pragma once

#include "sm90/wgmma.cuh"

namespace chunkscan::cuda {

// Byte offset of column byte `column` in row `row` of a tile with rows of `width` 16-bit elements.
template <int width>
__device__ inline u32 swizzled(u32 row, u32 column) {
  const u32 start = row * (2 * width);
  return start + (column ^ (start >> 3 & (2 * width - 16)));
}

// d += A B for a B of any number of columns, a multiple of 16. B at `address`: `rows` rows along K,
// columns of `width` one behind the other; K runs over rows k..k+15.
template <Element e, int columns, int width, int rows, int first = 0, class A>
__device__ inline void product(float* d, const A& a, u32 address, int k, int more) {
  constexpr int N = columns >= 64 ? 64 : columns >= 32 ? 32 : 16;
  constexpr u32 kColumnBytes = rows * 2 * width;
  constexpr u32 kFirst = first / width * kColumnBytes + first % width * 2;
  wgmma<e, N, 1>(d, a, Operand(address + kFirst + k * 2 * width, width, kColumnBytes), more);
  if constexpr (columns > N) {
    product<e, columns - N, width, rows, first + N>(d + N / 2, a, address, k, more);
  }
}

// Stages that a producer fills and consumers empty, in turn.
template <int stages>
struct Ring {
  u64 full[stages], empty[stages];

  __device__ void init(int consumers) {
    for (int i = 0; i < stages; ++i) {
      mbarrier_init(shared_address(&full[i]), 1);
      mbarrier_init(shared_address(&empty[i]), consumers);
    }
  }
};

// Where a thread is in a ring.
template <int stages>
struct Cursor {
  int stage = 0;
  u32 turn = 0;

  __device__ void next() {
    if (++stage == stages) {
      stage = 0;
      turn ^= 1;
    }
  }
  __device__ u32 wait_full(Ring<stages>& ring) const {
    mbarrier_wait(shared_address(&ring.full[stage]), turn);
    return stage;
  }
  // Returns the barrier to announce bytes to.
  __device__ u32 wait_empty(Ring<stages>& ring, u32 bytes) const {
    mbarrier_wait(shared_address(&ring.empty[stage]), turn ^ 1);
    const u32 barrier = shared_address(&ring.full[stage]);
    mbarrier_expect(barrier, bytes);
    return barrier;
  }
  // By every warp; `consumers` of Ring::init counts warps.
  __device__ void release(Ring<stages>& ring) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(shared_address(&ring.empty[stage]));
  }
};

}  // namespace chunkscan::cuda
