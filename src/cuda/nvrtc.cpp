#include "cuda/nvrtc.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "chunkscan/error.h"
#include "cuda/driver.h"
#include "cuda/nvrtc_library.h"

namespace chunkscan::cuda {

namespace {

// "sm_90a" -> itself where it is known, else "compute_<xy>" of the newest older one.
std::string target_of(const NvrtcLibrary& library, const std::string& architecture) {
  const int number =
      std::atoi(architecture.c_str() + std::min<std::size_t>(3, architecture.size()));
  const auto after = std::upper_bound(library.known.begin(), library.known.end(), number);
  if (!architecture.starts_with("sm_") || number == 0 || after == library.known.begin()) {
    throw Error(ErrorKind::kRuntime, "[forward] cuda: expected an architecture that NVRTC " +
                                         version_text(library.number) + " knows, got \"" +
                                         architecture + "\"");
  }
  const int newest = *(after - 1);
  return newest == number ? architecture : "compute_" + std::to_string(newest);
}

// The line of the first error, which names file and place.
std::string first_error(const std::string& log) {
  std::size_t start = log.find("error");
  if (start == std::string::npos) return log.substr(0, log.find('\n'));
  start = log.rfind('\n', start);
  start = start == std::string::npos ? 0 : start + 1;
  return log.substr(start, log.find('\n', start) - start);
}

}  // namespace

std::string nvrtc_unavailable() {
  if (nvrtc_library() != nullptr) return "";
  return "expected NVRTC 12 or 13 (of a CUDA toolkit, or of the Python packages "
         "nvidia-cuda-nvrtc-cu12 and nvidia-cuda-nvrtc), got none";
}

std::string nvrtc_path() {
  const auto library = nvrtc_library();
  return library == nullptr ? "" : library->path;
}

int nvrtc_version() {
  const auto library = nvrtc_library();
  return library == nullptr ? 0 : library->number;
}

std::vector<int> nvrtc_architectures() {
  const auto library = nvrtc_library();
  return library == nullptr ? std::vector<int>() : library->known;
}

Compiled compile(const std::string& source, std::span<const Source> headers,
                 const std::string& architecture, std::span<const std::string> options) {
  const auto library = nvrtc_library();
  if (library == nullptr) {
    throw Error(ErrorKind::kRuntime, "[forward] cuda: " + nvrtc_unavailable());
  }
  const std::string target = target_of(*library, architecture);
  const std::string target_option = "-arch=" + target;
  std::vector<const char*> values = {"-std=c++20", "--device-as-default-execution-space",
                                     target_option.c_str()};
  for (const std::string& option : options) values.push_back(option.c_str());
  std::vector<const char*> names, texts;
  for (const Source& header : headers) {
    names.push_back(header.name);
    texts.push_back(header.text.data());
  }

  auto require = [&](int result, const std::string& doing) {
    if (result == kNvrtcSuccess) return;
    throw Error(ErrorKind::kRuntime, "[forward] cuda: NVRTC " + version_text(library->number) +
                                         " failed to " + doing + ": " +
                                         library->error_string(result));
  };
  NvrtcProgram created = nullptr;
  require(library->create(&created, source.c_str(), "kernel.cu", static_cast<int>(names.size()),
                          texts.data(), names.data()),
          "start");
  auto destroy = [&](NvrtcProgram program) { library->destroy(&program); };
  const std::unique_ptr<_nvrtcProgram, decltype(destroy)> program(created, destroy);

  Compiled compiled;
  compiled.ptx = target.starts_with("compute_");
  compiled.compiler = library->number;
  const int result =
      library->compile(program.get(), static_cast<int>(values.size()), values.data());
  std::size_t bytes = 0;
  if (library->log_size(program.get(), &bytes) == kNvrtcSuccess && bytes > 1) {
    compiled.log.resize(bytes);
    library->log(program.get(), compiled.log.data());
    compiled.log.resize(bytes - 1);  // the zero
  }
  if (result != kNvrtcSuccess && !compiled.log.empty()) {
    throw Error(ErrorKind::kRuntime, "[forward] cuda: NVRTC " + version_text(library->number) +
                                         " failed to compile for " + architecture + ": " +
                                         first_error(compiled.log));
  }
  require(result, "compile for " + architecture);
  const auto size = compiled.ptx ? library->ptx_size : library->cubin_size;
  const auto get = compiled.ptx ? library->ptx : library->cubin;
  require(size(program.get(), &bytes), "give its code");
  compiled.image.resize(bytes);
  require(get(program.get(), compiled.image.data()), "give its code");
  return compiled;
}

}  // namespace chunkscan::cuda
