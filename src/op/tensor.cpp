#include "chunkscan/tensor.h"

#include <algorithm>

namespace chunkscan {

namespace {

// A view may be made of any sizes before validate() refuses those that no memory holds; until then
// their products must be harmless.
std::int64_t wrapping_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

}  // namespace

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64: return 8;
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kBF16:
    case DType::kF16: return 2;
  }
  return 0;
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "f64";
    case DType::kF32: return "f32";
    case DType::kBF16: return "bf16";
    case DType::kF16: return "f16";
    case DType::kI32: return "i32";
    case DType::kI64: return "i64";
  }
  return "?";
}

TensorView::TensorView(const void* pointer, DType type, std::span<const std::int64_t> sizes,
                       Device where)
    : data(const_cast<void*>(pointer)),
      dtype(type),
      device(where),
      rank(static_cast<int>(std::min<std::size_t>(sizes.size(), kMaxRank))) {
  std::copy_n(sizes.begin(), rank, shape.begin());
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride = wrapping_product(stride, shape[i]);
  }
}

TensorView::TensorView(const void* pointer, DType type, std::initializer_list<std::int64_t> sizes,
                       Device where)
    : TensorView(pointer, type, std::span(sizes.begin(), sizes.size()), where) {}

TensorView::TensorView(const void* pointer, DType type, std::initializer_list<std::int64_t> sizes,
                       std::initializer_list<std::int64_t> strides_in_elements, Device where)
    : TensorView(pointer, type, sizes, where) {
  std::copy_n(strides_in_elements.begin(), std::min<std::size_t>(strides_in_elements.size(), rank),
              strides.begin());
}

std::int64_t TensorView::elements() const {
  if (!present()) return 0;
  std::int64_t count = 1;
  for (int i = 0; i < rank; ++i) count = wrapping_product(count, shape[i]);
  return count;
}

}  // namespace chunkscan
