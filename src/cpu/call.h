// What one call's kernels share: the problem, the buffers, and typed access to the scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/layout.h"
#include "op/buffers.h"
#include "op/problem.h"

namespace chunkscan {

struct CpuCall {
  const Problem& problem;
  const Buffers& buffers;
  const Config& config;
  const CpuLayout layout;
  std::byte* workspace;
  bool stream_y;  // y is written past the caches
};

// Scratch of one block in flight.
struct BlockScratch {
  const CpuLayout& layout;
  std::byte* base;

  template <typename T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(base + offset);
  }
  Chunk& chunk(std::int64_t w) const { return at<Chunk>(layout.chunks)[w]; }
  float* CB(std::int64_t w) const { return at<float>(layout.CB) + w * layout.q * layout.q16; }
  float* decay(std::int64_t w, std::int64_t head, DecayRow row) const {
    return at<float>(layout.decay) + ((w * layout.heads + head) * kDecayRows + row) * layout.q16;
  }
  HeadSums& sums(std::int64_t w, std::int64_t head) const {
    return at<HeadSums>(layout.sums)[w * layout.heads + head];
  }
  Carried& carried(std::int64_t head) const { return at<Carried>(layout.carried)[head]; }
  float* lost(std::int64_t head) const {
    return at<float>(layout.lost) + head * layout.n16 * layout.slice;
  }
  double& log_decay(std::int64_t head) const { return at<double>(layout.log_decay)[head]; }
  float* state(std::int64_t head) const {
    return at<float>(layout.states) + head * layout.n16 * layout.slice;
  }
  float* entering(std::int64_t w, std::int64_t head) const {
    return at<float>(layout.entering) + (w * layout.heads + head) * layout.n16 * layout.slice;
  }
};

// The largest magnitude of a head's initial state, where slices of it have to decide alike.
inline float& initial_most(const CpuCall& call, std::int64_t sequence, std::int64_t head) {
  return reinterpret_cast<float*>(call.workspace +
                                  call.layout.initial_most)[sequence * call.problem.h + head];
}

// Scratch of one thread. The first hold a window's B and C, as fp32 and (native_bf16) in pairs.
struct WorkerScratch {
  const CpuLayout& layout;
  std::byte* base;

  float* at(std::size_t offset) const { return reinterpret_cast<float*>(base + offset); }
  Operands& operands(std::int64_t w) const {
    return reinterpret_cast<Operands*>(base + layout.operands)[w];
  }
  const float* B(std::int64_t w) const { return operands(w).B.rows; }
  const float* C(std::int64_t w) const { return operands(w).C.rows; }
  float* own_B(std::int64_t w) const { return at(layout.B) + w * layout.q16 * layout.n16; }
  float* own_C(std::int64_t w) const { return at(layout.C) + w * layout.q16 * layout.n16; }
  std::uint32_t* B_pairs(std::int64_t w) const {
    return reinterpret_cast<std::uint32_t*>(at(layout.B_pairs)) + w * (layout.q16 / 2) * layout.n16;
  }
  std::uint32_t* C_pairs(std::int64_t w) const {
    return reinterpret_cast<std::uint32_t*>(at(layout.C_pairs)) + w * layout.q * (layout.n16 / 2);
  }
  float* columns() const { return at(layout.columns); }
  float* X() const { return at(layout.X); }
  std::uint32_t* X_pairs() const { return reinterpret_cast<std::uint32_t*>(at(layout.X_pairs)); }
  std::uint32_t* S_pairs() const { return reinterpret_cast<std::uint32_t*>(at(layout.S_pairs)); }
  float* M() const { return at(layout.M); }
  float* y() const { return at(layout.y); }
  float* z() const { return at(layout.z); }
  float* D() const { return at(layout.D); }
  float* rows() const { return at(layout.rows); }
};

// Columns [begin, begin + count) of p of `heads` heads of one group of a sequence, from
// `first_head` (on the h axis) on.
struct Block {
  Sequence sequence;
  std::int64_t group;
  std::int64_t first_head;
  std::int64_t heads;
  std::int64_t begin;  // of its columns of p
  std::int64_t count;
  BlockScratch scratch;
};

// The part of a head that one walk covers.
struct Slice {
  std::int64_t head_in_block;
  std::int64_t head;  // h axis
  std::int64_t begin;
  std::int64_t count;
};

inline BlockScratch block_scratch(const CpuCall& call, std::int64_t index) {
  return {call.layout, call.workspace + call.layout.blocks +
                           static_cast<std::size_t>(index) * call.layout.block_bytes};
}

inline WorkerScratch worker_scratch(const CpuCall& call, int thread) {
  return {call.layout, call.workspace + call.layout.workers +
                           static_cast<std::size_t>(thread) * call.layout.worker_bytes};
}

}  // namespace chunkscan
