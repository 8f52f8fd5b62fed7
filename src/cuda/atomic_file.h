// Writing a file so that no reader ever sees a part of it.
#pragma once

#include <string>
#include <string_view>

namespace chunkscan::cuda {

// Part of every temporary name, which is the final one with this and a suffix of the process.
inline constexpr std::string_view kTemporary = ".tmp-";

// Under a temporary name beside `path`, then renamed. "" = written, else why not; then nothing of
// it is left.
std::string write_whole(const std::string& path, std::string_view bytes);

}  // namespace chunkscan::cuda
