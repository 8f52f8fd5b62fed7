// Tiles in shared memory, and how tensors of any strides get there. Rows and columns that the
// tensor lacks become zeros.
#pragma once

#include "element.cuh"
#include "ptx.cuh"

namespace chunkscan::cuda {

template <Element e>
struct TileElementOf {
  using type = u16;
};
template <>
struct TileElementOf<Element::kF32> {
  using type = float;
};
template <Element e>
using TileElement = typename TileElementOf<e>::type;

// A matrix inside a tensor.
struct View {
  i64 at, row_stride, column_stride;
  int rows, columns;  // that exist; possibly none
};

template <Element e>
__device__ inline TileElement<e> tile_element(const Tensor& tensor, i64 index) {
  if constexpr (e == Element::kF32) {
    return load(tensor, index);
  } else {
    return reinterpret_cast<const u16*>(tensor.data)[index];
  }
}

// Loads many elements before the first is stored, so that their latencies overlap. Neighbouring
// threads take neighbours along the dimension of the smaller stride.
template <Element e, int rows, int columns, int stride, int threads>
__device__ void load_elements(TileElement<e>* tile, const Tensor& tensor, const View& view) {
  constexpr int kBatch = 8;
  constexpr int kCount = rows * columns;
  const bool along_rows = view.column_stride <= view.row_stride;
#pragma unroll 1
  for (int first = threadIdx.x; first < kCount; first += kBatch * threads) {
    TileElement<e> value[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * threads;
      const int row = along_rows ? index / columns : index % rows;
      const int column = along_rows ? index % columns : index / rows;
      value[i] = 0;
      if (index < kCount && row < view.rows && column < view.columns) {
        value[i] =
            tile_element<e>(tensor, view.at + row * view.row_stride + column * view.column_stride);
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * threads;
      const int row = along_rows ? index / columns : index % rows;
      const int column = along_rows ? index % columns : index / rows;
      if (index < kCount) tile[row * stride + column] = value[i];
    }
  }
}

// All threads of the block; copies belong to the group that is committed next.
template <Element e, Load path, int rows, int columns, int stride, int threads>
__device__ void load_tile(TileElement<e>* tile, const Tensor& tensor, const View& view) {
  if constexpr (path == Load::kElements) {
    load_elements<e, rows, columns, stride, threads>(tile, tensor, view);
  } else {
    constexpr int kBytes = path == Load::kCopy16 ? 16 : path == Load::kCopy8 ? 8 : 4;
    constexpr int kPerCopy = kBytes / element_bytes(e);
    constexpr int kPerRow = columns / kPerCopy;
    const auto* data = reinterpret_cast<const TileElement<e>*>(tensor.data);
#pragma unroll 4
    for (int i = threadIdx.x; i < rows * kPerRow; i += threads) {
      const int row = i / kPerRow, column = i % kPerRow * kPerCopy;
      const int left = row < view.rows ? view.columns - column : 0;
      const int count = left < 0 ? 0 : left < kPerCopy ? left : kPerCopy;
      const i64 at = count == 0 ? 0 : view.at + row * view.row_stride + column;
      copy_async<kBytes>(shared_address(tile + row * stride + column), data + at,
                         count * element_bytes(e));
    }
  }
}

// A stretch of 4- or 8-byte values.
template <int threads, class T>
__device__ void load_values(T* to, const T* from, int count, int valid) {
  for (int i = threadIdx.x; i < count; i += threads) {
    copy_async<sizeof(T)>(shared_address(to + i), from + (i < valid ? i : 0),
                          i < valid ? sizeof(T) : 0);
  }
}

}  // namespace chunkscan::cuda
