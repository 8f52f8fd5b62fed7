#include "io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "io/file.h"
#include "io/header.h"
#include "io/sentence.h"

namespace chunkscan::io {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr std::uint64_t kLengthBytes = 8;  // the header's length, in front of it

Memory memory_for(std::uint64_t bytes, const std::string& file) {
  Memory memory = aligned_memory(bytes);
  if (memory == nullptr) {
    throw Error(ErrorKind::kRuntime,
                file + ": expected " + std::to_string(bytes) + " bytes of memory, got none");
  }
  return memory;
}

std::string read_header_text(InputFile& file) {
  if (file.size() < kLengthBytes) {
    refuse_file(file.path(), "file", "at least 8 bytes", std::to_string(file.size()));
  }
  std::uint64_t length = 0;
  file.read(&length, kLengthBytes);
  const std::uint64_t most = std::min(kMaxHeaderBytes, file.size() - kLengthBytes);
  if (length > most) {
    refuse_file(file.path(), "header length",
                most == kMaxHeaderBytes ? "at most 100000000 bytes"
                                        : "at most the file's " + std::to_string(most) + " bytes",
                std::to_string(length));
  }
  std::string text(length, '\0');
  file.read(text.data(), text.size());
  return text;
}

}  // namespace

std::size_t Tensor::bytes() const {
  std::size_t count = size_of(dtype);
  for (std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  return count;
}

TensorView Tensor::view() const {
  if (shape.empty()) return TensorView(data, dtype, {1});
  return TensorView(data, dtype, std::span(shape));
}

Safetensors read_safetensors(const std::string& path) {
  InputFile file(path);
  const std::string text = read_header_text(file);
  const std::uint64_t data_bytes = file.size() - kLengthBytes - text.size();
  Header header = parse_header(text, data_bytes, path);

  Safetensors result;
  result.metadata = std::move(header.metadata);
  result.memory.push_back(memory_for(data_bytes, path));
  std::byte* data = static_cast<std::byte*>(result.memory.front().get());
  file.read(data, data_bytes);

  for (HeaderEntry& entry : header.entries) {
    void* start = data + entry.begin;
    if (entry.begin % size_of(entry.dtype) != 0) {  // legal, but no element could be loaded
      const std::uint64_t bytes = entry.end - entry.begin;
      result.memory.push_back(memory_for(bytes, path));
      start = std::memcpy(result.memory.back().get(), start, bytes);
    }
    result.tensors.emplace(std::move(entry.name),
                           Tensor{entry.dtype, std::move(entry.shape), start});
  }
  return result;
}

void require_writable(const std::string& path) { require_writable_file(path); }

void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const Header header = lay_out(tensors, metadata);
  const std::string text = to_json(header, path);
  const std::uint64_t length = text.size();
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(&length, 1)),
                                                    std::as_bytes(std::span(text))};
  for (const HeaderEntry& entry : header.entries) {
    const Tensor& tensor = tensors.at(entry.name);
    pieces.emplace_back(static_cast<const std::byte*>(tensor.data), tensor.bytes());
  }
  write_file(path, pieces);
}

}  // namespace chunkscan::io
