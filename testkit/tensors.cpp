#include "testkit/tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "op/element.h"

namespace chunkscan::testkit {

namespace {

std::byte* address_of(const TensorView& view, std::initializer_list<std::int64_t> index) {
  std::int64_t offset = 0;
  const std::int64_t* stride = view.strides.data();
  for (std::int64_t i : index) offset += i * *stride++;
  return static_cast<std::byte*>(view.data) +
         offset * static_cast<std::int64_t>(size_of(view.dtype));
}

// SplitMix64's finaliser: every output bit depends on every input bit.
std::uint64_t hash(std::uint64_t v) {
  v += 0x9e3779b97f4a7c15u;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
  return v ^ (v >> 31);
}

std::uint64_t bits_at(std::uint64_t seed, std::uint64_t index) { return hash(hash(seed) ^ index); }

// In (0, 1), from 24 bits.
float fraction(std::uint64_t bits) {
  return (static_cast<float>(bits & 0xffffffu) + 0.5f) * 0x1p-24f;
}

}  // namespace

Block::Block(std::size_t bytes) : memory_(aligned_memory(bytes)), bytes_(bytes) {
  if (memory_ == nullptr) throw std::bad_alloc();
  std::memset(memory_.get(), 0xff, bytes);
}

OwnedTensor::OwnedTensor(DType dtype, std::span<const std::int64_t> shape)
    : view_(nullptr, dtype, shape) {
  block_ = Block(static_cast<std::size_t>(view_.elements()) * size_of(dtype));
  view_.data = block_.data();
}

OwnedTensor OwnedTensor::copy_of(const TensorView& view) {
  OwnedTensor tensor(view.dtype, {view.shape.data(), static_cast<std::size_t>(view.rank)});
  copy(view, tensor.view());
  return tensor;
}

TensorView slice(const TensorView& view, int dimension, std::int64_t begin, std::int64_t end) {
  TensorView part = view;
  part.shape[dimension] = end - begin;
  part.data = static_cast<std::byte*>(view.data) +
              begin * view.strides[dimension] * static_cast<std::int64_t>(size_of(view.dtype));
  return part;
}

double get(const TensorView& view, std::initializer_list<std::int64_t> index) {
  return load_element(view.dtype, address_of(view, index));
}

void set(const TensorView& view, std::initializer_list<std::int64_t> index, double value) {
  store_element(view.dtype, address_of(view, index), value);
}

void fill(const TensorView& view, const std::function<double(Index)>& value) {
  for_each_element(view, [&](Index index, std::byte* address) {
    store_element(view.dtype, address, value(index));
  });
}

void fill(const TensorView& view, double value) {
  for_each_element(view,
                   [&](Index, std::byte* address) { store_element(view.dtype, address, value); });
}

void poison(const TensorView& view) {
  for_each_element(
      view, [&](Index, std::byte* address) { std::memset(address, 0xff, size_of(view.dtype)); });
}

void copy(const TensorView& from, const TensorView& to) {
  TensorView source = from;
  for_each_element(to, [&](Index index, std::byte* address) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * source.strides[i];
    const std::byte* at = static_cast<const std::byte*>(source.data) +
                          offset * static_cast<std::int64_t>(size_of(source.dtype));
    if (source.dtype == to.dtype) {
      std::memcpy(address, at, size_of(to.dtype));
    } else {
      store_element(to.dtype, address, load_element(source.dtype, at));
    }
  });
}

bool same_bits(const TensorView& a, const TensorView& b) {
  if (a.dtype != b.dtype || a.rank != b.rank ||
      !std::equal(a.shape.begin(), a.shape.begin() + a.rank, b.shape.begin())) {
    return false;
  }
  const std::size_t bytes = static_cast<std::size_t>(a.elements()) * size_of(a.dtype);
  const OwnedTensor plain_a = OwnedTensor::copy_of(a), plain_b = OwnedTensor::copy_of(b);
  return std::memcmp(plain_a.view().data, plain_b.view().data, bytes) == 0;
}

float uniform_at(std::uint64_t seed, std::uint64_t index) { return fraction(bits_at(seed, index)); }

// Box and Muller's transform.
float normal_at(std::uint64_t seed, std::uint64_t index) {
  constexpr float kTwoPi = 6.28318530718f;
  const std::uint64_t bits = bits_at(seed, index);
  return std::sqrt(-2.0f * std::log(fraction(bits))) * std::cos(kTwoPi * fraction(bits >> 40));
}

}  // namespace chunkscan::testkit
