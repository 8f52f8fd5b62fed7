// Compile-time choices of the kernels. The host fills these structs in and prints them as template
// arguments; the device reads them. Nothing is included: NVRTC has no headers at hand.
#pragma once

namespace chunkscan::cuda {

using i64 = long long;
using u64 = unsigned long long;
using u32 = unsigned int;
using u16 = unsigned short;
using u8 = unsigned char;

enum class Element : u8 { kF32, kBF16, kF16 };

// How the rows of x are cut into sequences.
enum class Packing : u8 {
  kNone,     // each row is one
  kOffsets,  // cu_seqlens
  kRuns,     // seq_idx: runs of equal values, listed by find_runs
};

constexpr int element_bytes(Element e) { return e == Element::kF32 ? 4 : 2; }

constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

struct FindRunsConfig {
  bool count = true;  // the first launch; the second writes

  constexpr int threads() const { return 256; }
};

// Tokens of a block of find_runs: as many blocks as can add up each other's counts with ease.
constexpr i64 kRunBatch = 1024;  // tokens that a block takes at a time
constexpr i64 run_tile(i64 tokens) {
  const i64 batches = (tokens + kRunBatch - 1) / kRunBatch;
  return (batches + 1023) / 1024 * kRunBatch;
}
constexpr i64 run_tiles(i64 tokens) {
  return tokens == 0 ? 1 : (tokens + run_tile(tokens) - 1) / run_tile(tokens);
}

// State tiles (of a head) that Packing::kRuns can need, however many runs there are: state_slot().
constexpr i64 run_state_slots(i64 rows, i64 l, int q) { return rows + rows * l / q + 1; }

struct ChunkCumsumConfig {
  int q = 128;
  int heads = 32;  // of a block; a multiple of the 8 warps
  Packing packing = Packing::kNone;
  // Also writes what rounding cs to fp32 loses: where products are fp32.
  bool compensated = false;
  bool split_weights = false;  // see Decay::weight

  constexpr int threads() const { return 256; }
};

// Tiles of bf16 or fp16 in shared memory: columns of at most 64 elements, one behind the other,
// with the swizzle that TMA has for rows of that width.
constexpr int width_of(int columns) { return columns >= 64 ? 64 : columns >= 32 ? 32 : 16; }

// A head's state in the workspace lies as compute_out wants it in shared memory: n_pad rows.
constexpr int state_cols(int p) { return round_up(p, width_of(p)); }
constexpr int state_elements(int p, int n) { return state_cols(p) * round_up(n, 64); }

struct FwdPassStateConfig {
  int p = 64, n = 128, q = 128;
  Element io = Element::kBF16;
  Packing packing = Packing::kNone;
  bool ragged = false;  // a chunk before a sequence's last may have fewer than q tokens
  int p_tile = 64;      // columns of p a block owns: 16, 32, 64 or 128
  int warpgroups = 1;   // each owns 64 rows of n
  int stages = 4;

  constexpr int n_pad() const { return round_up(n, 64); }
  constexpr int width() const { return width_of(p_tile); }
  constexpr int p_pad() const { return round_up(p, p_tile); }
  constexpr int p_slices() const { return p_pad() / p_tile; }
  constexpr int n_slices() const { return n_pad() / (64 * warpgroups); }
  constexpr int threads() const { return 128 * warpgroups + 32; }

  constexpr int stage_bytes() const {
    return 2 * q * (p_tile + 64 * warpgroups) + round_up(4 * (q + 4), 1024);
  }
  constexpr int shared_bytes() const {
    return stages * stage_bytes() + 2 * 64 * warpgroups * p_tile + round_up(16 * stages, 1024);
  }
};

struct ComputeOutConfig {
  int p = 64, n = 128, q = 128;
  Element io = Element::kBF16;
  Packing packing = Packing::kNone;
  bool ragged = false;
  bool z = false;
  int p_tile = 64;    // columns of y at a time
  int stages = 2;     // x, z and state of a head's p_tile columns
  int bc_stages = 1;  // B and C of a chunk

  constexpr int n_pad() const { return round_up(n, 64); }
  constexpr int columns() const { return p < p_tile ? p : p_tile; }
  constexpr int p_slices() const { return round_up(p, p_tile) / p_tile; }
  constexpr int width() const { return width_of(columns()); }
  constexpr int p_pad() const { return round_up(columns(), 16); }        // columns computed
  constexpr int p_cols() const { return round_up(columns(), width()); }  // in shared memory
  constexpr int warpgroups() const { return q / 64; }
  // Two warpgroups need more registers than 288 threads can have (a quarter of a multiprocessor
  // would hold three warps), so the one feeding warp is a whole warpgroup that gives its own away.
  constexpr bool moves_registers() const { return warpgroups() > 1; }
  constexpr int threads() const { return 128 * warpgroups() + (moves_registers() ? 128 : 32); }

  constexpr int chunk_bytes() const { return 2 * n_pad() * q * 2; }
  constexpr int head_bytes() const {
    return (z ? 2 : 1) * p_cols() * q * 2 + p_cols() * n_pad() * 2 + round_up(8 * (q + 2), 1024);
  }
  constexpr int shared_bytes() const {
    return bc_stages * chunk_bytes() + stages * head_bytes() + p_cols() * q * 2 +
           round_up(16 * (stages + bc_stages), 1024);
  }
};

// How the portable kernels bring a tensor into shared memory.
enum class Load : u8 {
  kElements,  // any strides, any dtype
  kCopy4,  // cp.async of 4, 8 or 16 bytes: dtype = io, the last dimension contiguous, the address
  kCopy8,  // and all other strides multiples of those bytes
  kCopy16,
};

// Elements from one row to the next of a portable tile, so that the lanes of a warp meet in no bank
// when they read fragments: by ldmatrix, or fp32 pairs along a row, or (`across`) along a column.
constexpr int tile_stride(Element e, int columns, bool across) {
  if (e != Element::kF32) return (columns / 8 | 1) * 8;
  return columns + (across ? 4 : 8);
}

// States of the portable kernels lie in the workspace as fragments of 16 x 16 elements (mma.cuh),
// in bf16 where products are, else in fp32.
constexpr int state_element_bytes(Element io) { return io == Element::kBF16 ? 2 : 4; }
constexpr i64 state_bytes(Element io, int p, int n) {
  return i64{round_up(p, 16)} * round_up(n, 16) * state_element_bytes(io);
}

struct PortableFwdPassStateConfig {
  int p = 64, n = 128, q = 128;
  Element io = Element::kBF16;  // of x and B both; kF32 serves any mixture, too
  Packing packing = Packing::kNone;
  Load x_load = Load::kCopy16, B_load = Load::kCopy16;
  int p_tile = 64, n_tile = 128;  // the slice of a block
  int warps_p = 2, warps_n = 2;   // that share it: multiples of 16 x 16 each
  int token_tile = 32;            // tokens of a stage
  int stages = 4;

  constexpr int p_slices() const { return round_up(p, p_tile) / p_tile; }
  constexpr int n_slices() const { return round_up(n, n_tile) / n_tile; }
  constexpr int threads() const { return 32 * warps_p * warps_n; }
  constexpr int x_stride() const { return tile_stride(io, p_tile, true); }
  constexpr int B_stride() const { return tile_stride(io, n_tile, true); }
  constexpr int stage_bytes() const {
    return token_tile * (x_stride() + B_stride()) * element_bytes(io) +
           4 * round_up(token_tile + 1, 4);
  }
  constexpr int shared_bytes() const { return stages * stage_bytes(); }
};

struct PortableComputeOutConfig {
  int p = 64, n = 128, q = 128;
  Element io = Element::kBF16;  // of x, B and C all; kF32 serves any mixture, too
  Packing packing = Packing::kNone;
  bool z = false;
  Load x_load = Load::kCopy16, B_load = Load::kCopy16, C_load = Load::kCopy16;
  int p_tile = 64;   // columns of y at a time
  int n_tile = 128;  // of C, B and the state at a time; where it covers n, C stays
  int warps = 8;
  int row_tiles = 1;  // of 16 rows of y, a warp
  int stages = 2;

  constexpr int rows() const { return 16 * row_tiles * warps; }
  constexpr int row_blocks() const { return q / rows(); }
  constexpr int p_slices() const { return round_up(p, p_tile) / p_tile; }
  constexpr int n_slices() const { return round_up(n, n_tile) / n_tile; }
  constexpr int threads() const { return 32 * warps; }
  constexpr bool compensated() const { return io == Element::kF32; }
  constexpr int bc_stride() const { return tile_stride(io, n_tile, false); }
  constexpr int x_stride() const { return tile_stride(io, p_tile, true); }
  constexpr int B_bytes() const { return q * bc_stride() * element_bytes(io); }
  constexpr int C_bytes() const { return rows() * bc_stride() * element_bytes(io); }
  constexpr int head_bytes() const {
    return n_tile * p_tile * state_element_bytes(io) + q * x_stride() * element_bytes(io) + 12 * q;
  }
  constexpr int stage_bytes() const { return B_bytes() > head_bytes() ? B_bytes() : head_bytes(); }
  constexpr int shared_bytes() const {
    return (n_slices() == 1 ? 1 : stages) * C_bytes() + stages * stage_bytes();
  }
};

}  // namespace chunkscan::cuda
