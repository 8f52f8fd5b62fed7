// Matrix products of a warpgroup: d (64 x N, fp32, in registers) += A (64 x 16) B (16 x N).
// B is in shared memory, A there or in registers. Thread t of the warpgroup holds of d, in column
// tile j of 8, d[4 j + {0, 1}] = row 16 (t / 32) + t % 32 / 4, columns 8 j + 2 (t % 4) + {0, 1},
// and d[4 j + {2, 3}] = the same 8 rows below. A in registers is cut the same way.
#pragma once

#include "ptx.cuh"

namespace chunkscan::cuda {

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int left>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(left) : "memory");
}

// Where an operand lies: rows of `width` elements (16, 32 or 64), swizzled as TMA does for boxes of
// that width. `stride_bytes` leads from one column of such rows to the next.
struct Operand {
  u64 bits;

  __device__ Operand(u32 address, int width, u32 stride_bytes) {
    const u64 swizzle = width == 64 ? 1 : width == 32 ? 2 : 3;
    bits = u64{(address & 0x3ffff) >> 4} | u64{stride_bytes >> 4} << 16 |
           u64{static_cast<u32>(width)} << 32 |  // 8 rows of `width` elements are 16 `width` bytes
           swizzle << 62;
  }
  __device__ Operand plus(u32 bytes) const {
    Operand other = *this;
    other.bits += bytes >> 4;
    return other;
  }
};

// PTX wants every register by name, and text that differs by N and type: macros for what templates
// cannot spell, undefined below.
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D8(i) D4(i), D4(i + 4)
#define D16 D8(0), D8(8)
#define D32 D16, D8(16), D8(24)
#define R8 "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define R16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define R32                                                                                     \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define SS(n, type, regs, out, a, b, p, tb)                                                   \
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, " p                                    \
               ", 0;\n"                                                                       \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " " regs ", " a \
               ", " b ", more, 1, 1, 0, " tb ";\n}"                                           \
               : out                                                                          \
               : "l"(A.bits), "l"(B.bits), "r"(more), "n"(b_transposed))
#define RS(n, type, regs, out, a, b, p, tb)                                                   \
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, " p                                    \
               ", 0;\n"                                                                       \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " " regs ", " a \
               ", " b ", more, 1, 1, " tb ";\n}"                                              \
               : out                                                                          \
               : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "l"(B.bits), "r"(more),          \
                 "n"(b_transposed))
#define SS_N(type)                                        \
  if constexpr (N == 16) {                                \
    SS("16", type, R8, D8(0), "%8", "%9", "%10", "%11");  \
  } else if constexpr (N == 32) {                         \
    SS("32", type, R16, D16, "%16", "%17", "%18", "%19"); \
  } else {                                                \
    SS("64", type, R32, D32, "%32", "%33", "%34", "%35"); \
  }
#define RS_N(type)                                                         \
  if constexpr (N == 16) {                                                 \
    RS("16", type, R8, D8(0), "{%8, %9, %10, %11}", "%12", "%13", "%14");  \
  } else if constexpr (N == 32) {                                          \
    RS("32", type, R16, D16, "{%16, %17, %18, %19}", "%20", "%21", "%22"); \
  } else {                                                                 \
    RS("64", type, R32, D32, "{%32, %33, %34, %35}", "%36", "%37", "%38"); \
  }

// `more` = 0 starts from zero instead of d. b_transposed: B's rows in shared memory run along N
// instead of along K.
template <Element e, int N, int b_transposed>
__device__ inline void wgmma(float* d, Operand A, Operand B, int more) {
  static_assert(N == 16 || N == 32 || N == 64);
  if constexpr (e == Element::kBF16) {
    SS_N("bf16")
  } else {
    SS_N("f16")
  }
}

template <Element e, int N, int b_transposed>
__device__ inline void wgmma(float* d, const u32 (&A)[4], Operand B, int more) {
  static_assert(N == 16 || N == 32 || N == 64);
  if constexpr (e == Element::kBF16) {
    RS_N("bf16")
  } else {
    RS_N("f16")
  }
}

#undef D4
#undef D8
#undef D16
#undef D32
#undef R8
#undef R16
#undef R32
#undef SS
#undef RS
#undef SS_N
#undef RS_N

// Keeps the compiler from moving uses of accumulators across a wait, and from giving the registers
// of an operand away before it: to the compiler a product has read them once it is issued. (A copy
// of the next operand into the one at hand was merged with it, and wrong by a few elements a
// chunk.)
template <int count>
__device__ inline void hold(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int count>
__device__ inline void hold(u32 (&A)[count][4]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    asm volatile("" : "+r"(A[i][0]), "+r"(A[i][1]), "+r"(A[i][2]), "+r"(A[i][3])::"memory");
  }
}

}  // namespace chunkscan::cuda
