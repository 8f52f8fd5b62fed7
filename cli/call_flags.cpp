#include "cli/call_flags.h"

#include <fmt/core.h>

#include "cli/text.h"
#include "testkit/device_memory.h"

namespace chunkscan::cli {

namespace {

constexpr const char* kAnyOnGpu = "cuda";  // no backend's name: the library chooses among them

}  // namespace

void CallFlags::add(CLI::App& app) {
  app.option_defaults()->group("How it is computed");
  app.add_option(
         "--backend", backend,
         "One that `chunkscan info` lists, or cuda: the best on the GPU; else the best on the "
         "CPU")
      ->type_name("NAME");
  app.add_option("--config", config,
                 "As a plan prints it: words out of walk | staged | recurrence, q=TOKENS, "
                 "isa=NAME, on a GPU state=TILES, out=TILES (docs/kernels), joined by commas")
      ->type_name("WORDS");
  app.add_option("--chunk-size", chunk_size, "Tokens q of a chunk wanted; else the plan's choice")
      ->type_name("Q")
      ->check(at_least(1));
  app.add_option("--threads", threads, "CPU threads; else OpenMP's default")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
}

void CallFlags::apply(Options& options) const {
  options.backend = backend == kAnyOnGpu ? "" : backend;
  options.config = config;
  options.threads = threads;
  if (chunk_size > 0) options.chunk_size = chunk_size;
}

Device CallFlags::device() const { return testkit::device_of_backend(backend); }

void CallFlags::require_device() const {
  if (device().kind == DeviceKind::kCpu) return;
  if (const std::string why = testkit::gpu_unavailable(); !why.empty()) {
    throw Error(ErrorKind::kUnsupported, fmt::format("[forward] backend {}: {}", backend, why));
  }
}

CLI::Validator at_least(std::int64_t least) {
  const auto refusal = [least](const std::string& text) {
    std::int64_t value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least) return std::string();
    return fmt::format("expected a whole number of at least {}, got \"{}\"", least, text);
  };
  return CLI::Validator(refusal, "");
}

DType dtype_named(std::string_view flag, std::string_view name) {
  if (name == "fp32") name = "f32";
  if (name == "fp16") name = "f16";
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    if (name == name_of(dtype)) return dtype;
  }
  refuse(flag, "bf16 | f16 | f32", name);
}

}  // namespace chunkscan::cli
