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
  kRuns,     // seq_idx, turned into offsets by find_runs
};

constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

struct ChunkCumsumConfig {
  int q = 128;
  int heads = 32;  // of a block; a multiple of the 8 warps
  Packing packing = Packing::kNone;
  // Also writes what rounding cs to fp32 loses: where products are fp32.
  bool compensated = false;
  bool split_weights = false;  // see Decay::weight

  constexpr int threads() const { return 256; }
};

// State tiles in the workspace are laid out as their reader wants them in shared memory: p in
// columns of `width`, each column n_pad rows of `width` elements with the swizzle of that width.
constexpr int state_width(int p_tile) { return p_tile >= 64 ? 64 : p_tile >= 32 ? 32 : 16; }

struct FwdPassStateConfig {
  int p = 64, n = 128, q = 128;
  Element io = Element::kBF16;
  Packing packing = Packing::kNone;
  bool ragged = false;  // a chunk before a sequence's last may have fewer than q tokens
  int p_tile = 64;      // columns of p a block owns: 16, 32, 64 or 128
  int warpgroups = 1;   // each owns 64 rows of n
  int stages = 4;

  constexpr int n_pad() const { return round_up(n, 64); }
  constexpr int width() const { return state_width(p_tile); }
  constexpr int p_pad() const { return round_up(p, p_tile); }
  constexpr int p_slices() const { return p_pad() / p_tile; }
  constexpr int n_slices() const { return n_pad() / (64 * warpgroups); }
  constexpr int threads() const { return 128 * warpgroups + 32; }
};

struct ComputeOutConfig {
  int p = 64, n = 128, q = 128;
  Element io = Element::kBF16;
  Packing packing = Packing::kNone;
  bool ragged = false;
  bool z = false;
  int heads = 8;        // of one group, that a block takes one after the other: C B^T serves all
  int state_tile = 64;  // p_tile of the fwd_pass_state that wrote the states
  int stages = 2;       // x, z, state of a head
  int bc_stages = 1;    // B and C of a chunk

  constexpr int n_pad() const { return round_up(n, 64); }
  constexpr int p_width() const { return state_width(p); }
  constexpr int p_pad() const { return round_up(p, 16); }          // columns computed
  constexpr int p_cols() const { return round_up(p, p_width()); }  // columns in shared memory
  constexpr int warpgroups() const { return q / 64; }
  // Two warpgroups need more registers than 288 threads can have (a quarter of a multiprocessor
  // would hold three warps), so the one feeding warp is a whole warpgroup that gives its own away.
  constexpr bool moves_registers() const { return warpgroups() > 1; }
  constexpr int threads() const { return 128 * warpgroups() + (moves_registers() ? 128 : 32); }
};

}  // namespace chunkscan::cuda
