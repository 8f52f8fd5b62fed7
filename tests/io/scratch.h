// A directory that lives as long as a test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace chunkscan {

class Scratch : public testing::Test {
 protected:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "chunkscan-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) directory_ = name;
  }
  ~Scratch() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  std::string write_bytes(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  // A safetensors file that claims a header of `length` bytes.
  std::string write_raw(const std::string& name, std::uint64_t length, std::string_view header,
                        std::string_view data) const {
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
    return write_bytes(name, bytes.append(header).append(data));
  }

  std::string write_file(const std::string& name, std::string_view header,
                         std::string_view data) const {
    return write_raw(name, header.size(), header, data);
  }

  static std::string read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  int files() const {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) {
      ++count;
    }
    return count;
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace chunkscan
