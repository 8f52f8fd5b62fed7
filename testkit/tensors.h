// Tensors in host memory for tests: owning them, and reading and writing their elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>

#include "chunkscan/memory.h"
#include "chunkscan/tensor.h"

namespace chunkscan::testkit {

// Memory that starts on a cache line, filled with NaN bytes (0xff: NaN in every float dtype).
class Block {
 public:
  Block() = default;
  explicit Block(std::size_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  std::size_t size() const { return bytes_; }

 private:
  Memory memory_;
  std::size_t bytes_ = 0;
};

// A contiguous tensor and its memory, filled with NaN bytes.
class OwnedTensor {
 public:
  OwnedTensor() = default;
  OwnedTensor(DType dtype, std::span<const std::int64_t> shape);
  // As `view`, in dtype and values.
  static OwnedTensor copy_of(const TensorView& view);

  const TensorView& view() const { return view_; }

 private:
  Block block_;
  TensorView view_;
};

// The part [begin, end) of one dimension.
TensorView slice(const TensorView& view, int dimension, std::int64_t begin, std::int64_t end);

using Index = std::span<const std::int64_t>;

// Calls visit(index, address) for every element, row-major.
template <typename Visit>
void for_each_element(const TensorView& view, Visit&& visit) {
  if (view.elements() == 0) return;
  std::array<std::int64_t, kMaxRank> index = {};
  const Index current(index.data(), static_cast<std::size_t>(view.rank));
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  std::byte* address = static_cast<std::byte*>(view.data);
  while (true) {
    visit(current, address);
    int i = view.rank - 1;
    for (; i >= 0; --i) {
      address += view.strides[i] * bytes;
      if (++index[i] < view.shape[i]) break;
      address -= view.shape[i] * view.strides[i] * bytes;
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

double get(const TensorView& view, std::initializer_list<std::int64_t> index);
void set(const TensorView& view, std::initializer_list<std::int64_t> index, double value);

// Sets every element to value(index), rounded to the tensor's dtype.
void fill(const TensorView& view, const std::function<double(Index)>& value);
void fill(const TensorView& view, double value);

// Fills every element with NaN bytes.
void poison(const TensorView& view);

// Copies values between tensors of one shape, rounding to the dtype of `to`.
void copy(const TensorView& from, const TensorView& to);

// True where both have one dtype and shape, and hold the same bits at every index.
bool same_bits(const TensorView& a, const TensorView& b);

// Random numbers that depend on (seed, index) alone.
float uniform_at(std::uint64_t seed, std::uint64_t index);  // (0, 1)
float normal_at(std::uint64_t seed, std::uint64_t index);   // N(0, 1)

}  // namespace chunkscan::testkit
