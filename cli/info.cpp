#include <fmt/core.h>
#include <fmt/ranges.h>

#include <memory>

#include "chunkscan/chunkscan.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/text.h"

namespace chunkscan::cli {

namespace {

// "13.0, /usr/lib/libnvrtc.so.13", or why not.
std::string found_or_reason(const std::string& found, const std::string& reason) {
  if (found.empty()) return "none: " + reason;
  return reason.empty() ? found : found + ": " + reason;
}

Json cuda_json(const CudaInfo& cuda) {
  Json gpus = Json::array();
  for (const CudaInfo::Gpu& gpu : cuda.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)},
                    {"architecture", gpu.architecture},
                    {"memory_bytes", gpu.memory_bytes}});
  }
  return {{"gpus", gpus},
          {"driver", cuda.driver},
          {"driver_reason", cuda.driver_reason},
          {"nvrtc", cuda.nvrtc},
          {"nvrtc_path", cuda.nvrtc_path},
          {"nvrtc_reason", cuda.nvrtc_reason},
          {"pack", cuda.pack},
          {"pack_reason", cuda.pack_reason},
          {"cache", cuda.cache},
          {"cache_reason", cuda.cache_reason}};
}

void print_cuda(const CudaInfo& cuda) {
  for (const CudaInfo::Gpu& gpu : cuda.gpus) {
    fmt::print("gpu               {}, compute capability {}.{}, {}\n", gpu.name, gpu.major,
               gpu.minor,
               gpu.architecture.empty() ? "too old: expected 8.0 or later"
                                        : as_bytes(static_cast<double>(gpu.memory_bytes)));
  }
  const std::string driver = cuda.driver.empty() ? "" : "for CUDA " + cuda.driver;
  const std::string nvrtc = cuda.nvrtc.empty() ? "" : cuda.nvrtc + ", " + cuda.nvrtc_path;
  fmt::print("gpu driver        {}\n", found_or_reason(driver, cuda.driver_reason));
  fmt::print("gpu compiler      {}\n", found_or_reason(nvrtc, cuda.nvrtc_reason));
  fmt::print("gpu kernel pack   {}\n", found_or_reason(cuda.pack, cuda.pack_reason));
  fmt::print("gpu kernel cache  {}\n", found_or_reason(cuda.cache, cuda.cache_reason));
}

void print_info_json() {
  Json rows = Json::array();
  for (const BackendInfo& backend : backends()) {
    rows.push_back(
        {{"name", backend.name}, {"available", backend.available}, {"reason", backend.reason}});
  }
  print_json({{"version", version()},
              {"backends", rows},
              {"cpu", cpu_name()},
              {"cpus", cpu_count()},
              {"instruction_sets", cpu_instruction_sets()},
              {"threads", default_threads()},
              {"cuda", cuda_json(cuda_info())}});
}

void print_info() {
  fmt::print("chunkscan {}\n\n", version());
  Table table({"backend", "state", ""});
  for (const BackendInfo& backend : backends()) {
    table.add({backend.name, backend.available ? "available" : "unavailable", backend.reason});
  }
  fmt::print("{}\n", table.to_string());
  fmt::print("cpu               {}, {} logical\n", cpu_name(), cpu_count());
  fmt::print("instruction sets  {}\n", fmt::join(cpu_instruction_sets(), ", "));
  fmt::print("threads           {}\n", default_threads());
  print_cuda(cuda_info());
}

}  // namespace

Action add_info(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, kJsonHelp);
  return [json] {
    *json ? print_info_json() : print_info();
    return kOk;
  };
}

}  // namespace chunkscan::cli
