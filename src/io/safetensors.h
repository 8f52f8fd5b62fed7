// safetensors files: named tensors and string metadata behind a JSON header. The only door to
// strangers' files: a file is believed only after every claim in its header has been checked
// against its size, and before that nothing of a claimed size is allocated.
//
// Every refusal is an Error with one sentence: file, tensor, rule, value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chunkscan/error.h"
#include "chunkscan/memory.h"
#include "chunkscan/tensor.h"

namespace chunkscan::io {

// A contiguous, row-major tensor, aligned to its element size; somebody else owns the memory.
struct Tensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // at most kMaxRank sizes; none for a scalar
  void* data = nullptr;

  std::size_t bytes() const;
  // A scalar's view has shape (1), because a view of rank 0 stands for an absent tensor.
  TensorView view() const;
};

struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::vector<Memory> memory;  // what the tensors point into
};

// Reads the whole file. Refuses what the format forbids (duplicate names, holes, overlaps, offsets
// or shapes that do not fit), dtypes other than F64 F32 F16 BF16 I32 I64, and more than kMaxRank
// dimensions.
Safetensors read_safetensors(const std::string& path);

// Throws where write_safetensors() could not write to `path`, as far as that can be known before.
// Leaves nothing behind.
void require_writable(const std::string& path);

// Writes under a temporary name beside `path`, then renames: a failure leaves neither a temporary
// file nor a damaged old one. Refuses to replace anything but a regular file.
void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace chunkscan::io
