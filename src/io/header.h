// The header of a safetensors file: JSON text <-> checked entries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace chunkscan::io {

// The largest header that the format's own reader accepts, in bytes.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct HeaderEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes from the end of the header
  std::uint64_t end = 0;
};

struct Header {
  std::vector<HeaderEntry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

// Checks that the entries tile the file's `data_bytes` exactly. `file` names it in refusals.
Header parse_header(std::string_view json, std::uint64_t data_bytes, const std::string& file);

// Lays the tensors out one after the other, widest elements first so that each is aligned.
Header lay_out(const std::map<std::string, Tensor>& tensors,
               const std::map<std::string, std::string>& metadata);

// JSON text padded with spaces to a multiple of 8 bytes, so that the data behind it is aligned.
std::string to_json(const Header& header, const std::string& file);

}  // namespace chunkscan::io
