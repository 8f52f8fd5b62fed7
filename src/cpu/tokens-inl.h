// A chunk's tokens of x, z, B and C into fp32 scratch, and of y out of it. Two layouts are fast:
// the last dimension contiguous, or the tokens; elements are gathered one by one otherwise.
// Per-target include guard, see Highway.
#if defined(CHUNKSCAN_CPU_TOKENS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_TOKENS_INL_H
#undef CHUNKSCAN_CPU_TOKENS_INL_H
#else
#define CHUNKSCAN_CPU_TOKENS_INL_H
#endif

#include <algorithm>

#include "cpu/call.h"
#include "cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

// Tokens [begin, begin + len) of one head (of B and C: group), elements [first, first + count).
struct Tokens {
  const Array& array;
  DType dtype;
  std::int64_t batch;
  std::int64_t begin, len;
  std::int64_t head;
  std::int64_t first, count;

  std::byte* at(std::int64_t token, std::int64_t element) const {
    return array.at(batch, begin + token, head, first + element);
  }
  std::int64_t stride() const { return array.strides[3]; }
};

inline bool along_tokens(const Array& array) {
  return array && array.strides[1] == 1 && array.strides[3] != 1;
}

inline constexpr std::int64_t kCacheLine = 64;

// Whole cache lines of [from, from + bytes). Always inlined: GCC finds nothing that a call of it
// would change, and drops the call.
template <int kForWrite>
HWY_INLINE void prefetch_lines(const std::byte* from, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(from + i, kForWrite);
}

// Rows of a head lie h * p elements apart, and its columns l, which no hardware prefetcher follows.
// These fetch rows [begin, end), or the part of the columns that [begin, end) is of all rows: all
// of them where the calls cover all rows.
template <int kForWrite>
HWY_INLINE void prefetch(const Tokens& tokens, std::int64_t begin, std::int64_t end) {
  end = std::min(end, tokens.len);
  if (along_tokens(tokens.array)) {
    const std::int64_t last = begin < end ? tokens.count * end / tokens.len : 0;
    for (std::int64_t k = tokens.count * begin / std::max<std::int64_t>(tokens.len, 1); k < last;
         ++k) {
      prefetch_lines<kForWrite>(tokens.at(0, k), tokens.len * tokens.array.element_bytes);
    }
  } else {
    for (std::int64_t t = begin; t < end; ++t) {
      prefetch_lines<kForWrite>(tokens.at(t, 0), tokens.count * tokens.array.element_bytes);
    }
  }
}

// Row t of `to` = token t, padded with zeros. Returns the largest magnitude.
HWY_NOINLINE float load_tokens(const Tokens& tokens, float* to, std::int64_t to_row,
                               const WorkerScratch& worker) {
  // A row is fetched a chunk ahead into L2, see prefetch_around, and here into L1, where rows of a
  // power-of-two stride would have pushed each other out in between (4 % at
  // (1, 4096, 80, 64, 128, 1) in fp32 on two Zen 5 cores).
  constexpr std::int64_t kRowsAhead = 12;
  const bool turned = along_tokens(tokens.array);
  const bool apart = !turned && tokens.array.strides[1] > tokens.count;
  const std::int64_t rows = turned ? tokens.count : tokens.len;
  const std::int64_t row_length = turned ? tokens.len : tokens.count;
  const std::int64_t stride = turned ? 1 : tokens.stride();
  const std::int64_t columns_row = worker.layout.q16;
  float* const rows_to = turned ? worker.columns() : to;
  const std::int64_t rows_stride = turned ? columns_row : to_row;
  V largest = hn::Zero(f32);
  with_dtype(tokens.dtype, [&](auto type) HWY_ATTR {
    for (std::int64_t r = 0; r < rows; ++r) {
      if (apart) prefetch<0>(tokens, r + kRowsAhead, r + kRowsAhead + 1);
      float* row = rows_to + r * rows_stride;
      for_each_vector<decltype(type)>(turned ? tokens.at(0, r) : tokens.at(r, 0), stride,
                                      row_length, [&](std::int64_t k, V v) HWY_ATTR {
                                        largest = larger(hn::Abs(v), largest);
                                        hn::StoreU(v, f32, row + k);
                                      });
      if (!turned) zero_padding(row_length, row);
    }
  });
  if (turned) {
    std::fill(rows_to + rows * columns_row, rows_to + padded(rows) * columns_row, 0.0f);
    transpose(rows_to, columns_row, padded(rows), row_length, to, to_row);
  }
  return hn::GetLane(hn::MaxOfLanes(f32, largest));
}

// Whether the tokens lie in memory as load_tokens would copy them. (Each slice of a head prepares
// all of B and C: one head on two Zen 5 cores takes 7 % less without the copies.)
inline bool are_fp32_rows(const Tokens& tokens, std::int64_t row) {
  return tokens.dtype == DType::kF32 && tokens.stride() == 1 && tokens.count == row &&
         tokens.array.strides[1] == row;
}

// The largest magnitude of whole vectors.
HWY_NOINLINE float largest_of(const float* from, std::int64_t count) {
  V largest = hn::Zero(f32);
  for (std::int64_t i = 0; i < count; i += lanes()) {
    largest = larger(hn::Abs(hn::LoadU(f32, from + i)), largest);
  }
  return hn::GetLane(hn::MaxOfLanes(f32, largest));
}

// Token t = row t of `from`. `stream`: past the caches, where rows allow it.
HWY_NOINLINE void store_tokens(const Tokens& tokens, const float* from, std::int64_t from_row,
                               bool stream, const WorkerScratch& worker) {
  if (along_tokens(tokens.array)) {
    const std::int64_t columns_row = worker.layout.q16;
    transpose(from, from_row, tokens.len, tokens.count, worker.columns(), columns_row);
    for (std::int64_t k = 0; k < tokens.count; ++k) {
      store_row(tokens.dtype, tokens.at(0, k), 1, tokens.len, worker.columns() + k * columns_row);
    }
    return;
  }
  with_dtype(tokens.dtype, [&](auto type) HWY_ATTR {
    using Type = decltype(type);
    for (std::int64_t t = 0; t < tokens.len; ++t) {
      const float* row = from + t * from_row;
      std::byte* to = tokens.at(t, 0);
      std::int64_t k = 0;
      if (stream && tokens.stride() == 1 &&
          reinterpret_cast<std::uintptr_t>(to) % kCacheLine == 0) {
        for (; k + lanes() <= tokens.count; k += lanes()) {
          Type::stream(hn::LoadU(f32, row + k), reinterpret_cast<typename Type::T*>(to) + k);
        }
      }
      for (; k < tokens.count; k += lanes()) {
        store_vector<Type>(hn::LoadU(f32, row + k), to, tokens.stride(), k, tokens.count);
      }
    }
  });
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
