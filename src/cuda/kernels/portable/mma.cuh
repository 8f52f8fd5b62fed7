// Matrix products of a warp: d (16 x 8, fp32) += A (16 x 16) B (16 x 8), all in registers.
//
// Lane 4 g + t holds of d: rows g and g + 8, columns 2 t and 2 t + 1. A fragment holds pairs of
// neighbours along k: of A's row g at 2 t, row g + 8 at 2 t, row g at 2 t + 8, row g + 8 at 2 t +
// 8; of B's column g at 2 t, at 2 t + 8. TF32 products take the same pairs: their k may come in any
// order as long as A and B agree. So accumulators become operand A (or, transposed, B) as they are.
#pragma once

#include "element.cuh"
#include "ptx.cuh"

namespace chunkscan::cuda {

enum class Math : u8 {
  kBF16,
  kF16,
  kTF32,   // one pass: 10 bits of mantissa as f16, the range of fp32
  kSplit,  // each operand as a sum of two TF32: fp32's accuracy
};

// Of a product of two inputs, and of one whose operand was computed (16 bits may not hold it).
constexpr Math input_math(Element io) {
  return io == Element::kBF16 ? Math::kBF16 : io == Element::kF16 ? Math::kF16 : Math::kSplit;
}
constexpr Math computed_math(Element io) {
  return io == Element::kBF16 ? Math::kBF16 : io == Element::kF16 ? Math::kTF32 : Math::kSplit;
}

// Two neighbours as they lie in a tile.
template <Element e>
struct PairOf {
  using type = u32;
};
template <>
struct PairOf<Element::kF32> {
  using type = float2;
};
template <Element e>
using Pair = typename PairOf<e>::type;

template <Element e>
__device__ inline float2 to_floats(u32 pair) {
  return unpack<e>(pair);
}
template <Element e>
__device__ inline float2 to_floats(float2 pair) {
  return pair;
}

// An operand: 4 pairs of A, 2 pairs of B.
template <Math math, int pairs>
struct Fragment {
  static constexpr int kWords = math == Math::kSplit  ? 4 * pairs
                                : math == Math::kTF32 ? 2 * pairs
                                                      : pairs;
  u32 word[kWords];  // kSplit: the low parts behind the high ones

  // `exact`: the value fits without rounding.
  __device__ void set(int i, float2 v, bool exact) {
    if constexpr (math == Math::kBF16) {
      word[i] = pack<Element::kBF16>(v.x, v.y);
    } else if constexpr (math == Math::kF16) {
      word[i] = pack<Element::kF16>(v.x, v.y);
    } else if constexpr (math == Math::kTF32) {
      word[2 * i] = exact ? __float_as_uint(v.x) : round_to_tf32(v.x);
      word[2 * i + 1] = exact ? __float_as_uint(v.y) : round_to_tf32(v.y);
    } else {
      // The high part keeps TF32's bits, so that the rest is exact; of it the product cuts off
      // what is below 2^-21 of the value.
      const float high_x = __uint_as_float(__float_as_uint(v.x) & 0xffffe000u);
      const float high_y = __uint_as_float(__float_as_uint(v.y) & 0xffffe000u);
      word[2 * i] = __float_as_uint(high_x);
      word[2 * i + 1] = __float_as_uint(high_y);
      word[2 * pairs + 2 * i] = __float_as_uint(v.x - high_x);
      word[2 * pairs + 2 * i + 1] = __float_as_uint(v.y - high_y);
    }
  }

  template <Element e>
  __device__ void set_input(int i, Pair<e> v) {
    if constexpr ((e == Element::kBF16 && math == Math::kBF16) ||
                  (e == Element::kF16 && math == Math::kF16)) {
      word[i] = v;
    } else {
      set(i, to_floats<e>(v), true);
    }
  }
};

template <Math math>
using FragmentA = Fragment<math, 4>;
template <Math math>
using FragmentB = Fragment<math, 2>;

__device__ inline void mma_bf16(float (&d)[4], const u32 (&A)[4], const u32 (&B)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

__device__ inline void mma_f16(float (&d)[4], const u32 (&A)[4], const u32 (&B)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

// 16 of k as two products of 8: the first and the second halves of the pairs.
__device__ inline void mma_tf32(float (&d)[4], const u32* A, const u32* B) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(A[4 * half]), "r"(A[4 * half + 2]), "r"(A[4 * half + 1]), "r"(A[4 * half + 3]),
          "r"(B[2 * half]), "r"(B[2 * half + 1]));
  }
}

template <Math math>
__device__ inline void mma(float (&d)[4], const FragmentA<math>& A, const FragmentB<math>& B) {
  if constexpr (math == Math::kBF16) {
    mma_bf16(d, A.word, B.word);
  } else if constexpr (math == Math::kF16) {
    mma_f16(d, A.word, B.word);
  } else if constexpr (math == Math::kTF32) {
    mma_tf32(d, A.word, B.word);
  } else {
    // Tensor cores cut off when they add: long sums are kept outside, where additions round.
    float sum[4] = {};
    mma_tf32(sum, A.word + 8, B.word);
    mma_tf32(sum, A.word, B.word + 4);
    mma_tf32(sum, A.word, B.word);
#pragma unroll
    for (int i = 0; i < 4; ++i) d[i] += sum[i];
  }
}

// 16 x 16 elements of a tile whose rows run along k, as pairs of operand A: rows g and g + 8 at 2
// t, then both at 2 t + 8. As operand B: pairs 0 and 2 are columns 0..7, pairs 1 and 3
// columns 8..15.
template <Element e, class T>
__device__ inline void load_pairs(Pair<e> (&pairs)[4], const T* tile, int stride) {
  const int lane = threadIdx.x % 32;
  if constexpr (e == Element::kF32) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i % 2), k = lane % 4 * 2 + 8 * (i / 2);
      pairs[i] = *reinterpret_cast<const float2*>(tile + row * stride + k);
    }
  } else {
    ldmatrix_x4(pairs, shared_address(tile + lane % 16 * stride + lane / 16 * 8));
  }
}

// The same from a tile whose columns run along k.
template <Element e, class T>
__device__ inline void load_pairs_across(Pair<e> (&pairs)[4], const T* tile, int stride) {
  const int lane = threadIdx.x % 32;
  if constexpr (e == Element::kF32) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const T* at = tile + (lane % 4 * 2 + 8 * (i / 2)) * stride + lane / 4 + 8 * (i % 2);
      pairs[i] = {at[0], at[stride]};
    }
  } else {
    ldmatrix_x4_trans(
        pairs, shared_address(tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8));
  }
}

template <Math math, Element e>
__device__ inline void set_A(FragmentA<math>& A, const Pair<e> (&pairs)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) A.template set_input<e>(i, pairs[i]);
}

// Both operands B of 16 columns.
template <Math math, Element e>
__device__ inline void set_B(FragmentB<math> (&B)[2], const Pair<e> (&pairs)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) B[i % 2].template set_input<e>(i / 2, pairs[i]);
}

// The state as operand B of C S: k runs along n, columns along p. A fragment of 16 of p x 16 of n
// is what a warp holds of S (p x n) in two neighbouring accumulators; lanes write 16 bytes each.
template <Element io>
__device__ inline void store_state(u8* to, const float (&S0)[4], const float (&S1)[4]) {
  const int lane = threadIdx.x % 32;
  if constexpr (io == Element::kBF16) {
    reinterpret_cast<uint4*>(to)[lane] = {pack<io>(S0[0], S0[1]), pack<io>(S1[0], S1[1]),
                                          pack<io>(S0[2], S0[3]), pack<io>(S1[2], S1[3])};
  } else {
    reinterpret_cast<float4*>(to)[lane] = {S0[0], S0[1], S1[0], S1[1]};
    reinterpret_cast<float4*>(to)[lane + 32] = {S0[2], S0[3], S1[2], S1[3]};
  }
}

template <Element io, Math math>
__device__ inline void load_state(FragmentB<math> (&B)[2], const u8* from) {
  const int lane = threadIdx.x % 32;
  if constexpr (io == Element::kBF16) {
    const uint4 words = reinterpret_cast<const uint4*>(from)[lane];
    B[0].word[0] = words.x;
    B[0].word[1] = words.y;
    B[1].word[0] = words.z;
    B[1].word[1] = words.w;
  } else {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float4 values = reinterpret_cast<const float4*>(from)[lane + 32 * i];
      B[i].set(0, {values.x, values.y}, false);
      B[i].set(1, {values.z, values.w}, false);
    }
  }
}

}  // namespace chunkscan::cuda
