// libnvrtc's functions, found once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace chunkscan::cuda {

using NvrtcProgram = struct _nvrtcProgram*;

inline constexpr int kNvrtcSuccess = 0;

struct NvrtcLibrary {
  const char* (*error_string)(int result);
  int (*version)(int* major, int* minor);
  int (*architecture_count)(int* count);
  int (*architectures)(int* values);
  int (*create)(NvrtcProgram* program, const char* source, const char* name, int headers,
                const char* const* texts, const char* const* names);
  int (*destroy)(NvrtcProgram* program);
  int (*compile)(NvrtcProgram program, int options, const char* const* values);
  int (*cubin_size)(NvrtcProgram program, std::size_t* bytes);
  int (*cubin)(NvrtcProgram program, char* image);
  int (*ptx_size)(NvrtcProgram program, std::size_t* bytes);
  int (*ptx)(NvrtcProgram program, char* image);
  int (*log_size)(NvrtcProgram program, std::size_t* bytes);
  int (*log)(NvrtcProgram program, char* text);

  std::string path;
  int number = 0;          // 1000 * major + 10 * minor
  std::vector<int> known;  // architectures, ascending: 80, 86, ...
};

// Null where there is none.
std::shared_ptr<const NvrtcLibrary> nvrtc_library();

}  // namespace chunkscan::cuda
