// Compiles the kernels of the default plans of every model, for every architecture, and prints what
// they take: registers, spills, shared memory. The exit code is 1 where one spills or does not fit.
// usage: kernel_report [ARCHITECTURE...]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "cuda/atomic_file.h"
#include "cuda/cache.h"
#include "cuda/code.h"
#include "cuda/cuda_backend.h"
#include "cuda/device.h"
#include "cuda/hash.h"
#include "cuda/nvrtc.h"
#include "plan.h"
#include "testkit/shapes.h"

namespace chunkscan::cuda {
namespace {

// In place of a log, where the compiler knows no such chip.
constexpr const char* kPtx = "PTX, which the driver assembles";

struct Row {
  Step step;
  DeviceInfo device;
  double ms = 0.0;
  std::string log;  // of the assembler; of what did not compile the error
};

// What a model's kernels depend on beside its sizes.
struct Traits {
  DType dtype;
  bool z, packed;
};

// The other dtypes on one architecture: all have as many registers.
std::vector<Traits> traits_on(const std::string& architecture) {
  std::vector<Traits> traits;
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    if (dtype != DType::kBF16 && architecture != "sm_80") continue;
    for (bool more : {false, true}) traits.push_back({dtype, more, more});
  }
  return traits;
}

Plan plan_of(const testkit::Model& model, const Traits& traits, const std::string& architecture) {
  constexpr std::int64_t kTokens = 4096;
  Inputs in;
  in.x = TensorView(nullptr, traits.dtype, {1, kTokens, model.h, model.p});
  in.dt = TensorView(nullptr, traits.dtype, {1, kTokens, model.h});
  in.A = TensorView(nullptr, DType::kF32, {model.h});
  in.B = in.C = TensorView(nullptr, traits.dtype, {1, kTokens, model.g, model.n});
  if (traits.z) in.z = in.x;
  if (traits.packed) in.cu_seqlens = TensorView(nullptr, DType::kI32, {9});
  Outputs out;
  out.y = in.x;
  Options options;
  options.architecture = architecture;
  return make_plan(in, out, options);
}

std::vector<Row> rows_for(const std::vector<std::string>& architectures) {
  std::vector<Row> rows;
  for (const std::string& architecture : architectures) {
    const DeviceInfo device = device_named(architecture);
    for (const testkit::Model& model : testkit::models()) {
      for (const Traits& traits : traits_on(architecture)) {
        const Plan plan = plan_of(model, traits, architecture);
        for (const Step& step : kernels_of(plan.data())) {
          const auto same = [&](const Row& row) { return row.step.key == step.key; };
          if (std::none_of(rows.begin(), rows.end(), same)) rows.push_back({step, device, 0.0, ""});
        }
      }
    }
  }
  return rows;
}

// The log of a kernel that was compiled before lies beside the compiled kernels, under a name that
// lets it be removed like these: time, then text.
std::string remembered_path(const KernelKey& key) {
  if (cache_directory().empty()) return "";
  std::uint64_t hash = hash_step(sources_hash(), hash_of(key));
  hash = hash_step(hash, static_cast<std::uint64_t>(nvrtc_version()));
  return cache_directory() + "/" + std::to_string(hash) + ".kernel.log";
}

void compile_row(Row& row) {
  const std::string path = remembered_path(row.step.key);
  if (std::ifstream file(path); !path.empty() && file >> row.ms) {
    file.ignore();  // the end of the line
    row.log.assign(std::istreambuf_iterator<char>(file), {});
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string verbose = "--ptxas-options=-v";
  const Compiled code =
      compile(source_of(row.step.key), kernel_sources(), row.step.key.architecture, {&verbose, 1});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  row.ms = took.count();
  row.log = code.ptx ? kPtx : code.log;
  if (path.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(cache_directory(), ignored);
  write_whole(path, std::to_string(row.ms) + "\n" + row.log);
}

void compile_all(std::vector<Row>& rows) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      try {
        compile_row(rows[i]);
      } catch (const Error& error) {
        rows[i].log = error.what();
      }
    }
  };
  std::vector<std::jthread> helpers;  // joined at the end of this function
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back(work);
  work();
}

// The number before `words` in the assembler's log; 0 where it does not speak of it.
int number_before(const std::string& log, const std::string& words) {
  const std::size_t at = log.find(words);
  if (at == std::string::npos || at == 0) return 0;
  const std::size_t digit = log.find_last_not_of("0123456789", at - 1);
  return std::atoi(log.c_str() + (digit == std::string::npos ? 0 : digit + 1));
}

// "" = as it should be.
std::string complaint(const Row& row) {
  if (row.log == kPtx) return "";
  if (row.log.empty()) return "the assembler said nothing";
  if (row.log.find("bytes spill stores") == std::string::npos) return row.log;
  if (number_before(row.log, " bytes spill stores") + number_before(row.log, " bytes spill loads"))
    return "spills";
  // Such as products that wait for each other.
  if (row.log.find("Performance Loss") != std::string::npos) return "slow: see the log";
  const KernelKey& key = row.step.key;
  // Registers come in eights for each thread, 64 Ki of them in a multiprocessor.
  const int registers = (number_before(row.log, " registers") + 7) / 8 * 8;
  if (std::int64_t{registers} * key.threads * key.min_blocks > 65536) return "too many registers";
  const std::int64_t shared = number_before(row.log, " bytes smem") + row.step.shared_bytes;
  // A KiB of each block's is the system's.
  if (shared > row.device.shared_per_block_optin ||
      (shared + 1024) * key.min_blocks > row.device.shared_per_multiprocessor) {
    return "too much shared memory";
  }
  return "";
}

int report(const std::vector<Row>& rows) {
  std::printf("%-8s %-24s %7s %6s %5s %5s %6s %6s %6s %7s %6s  %s\n", "arch", "kernel", "threads",
              "blocks", "regs", "stack", "stores", "loads", "static", "dynamic", "ms", "config");
  int bad = 0;
  double ms = 0.0;
  for (const Row& row : rows) {
    const KernelKey& key = row.step.key;
    const std::string why = complaint(row);
    const auto number = [&](const char* words) { return number_before(row.log, words); };
    std::printf("%-8s %-24s %7d %6d %5d %5d %6d %6d %6d %7u %6.0f  %s%s%s\n",
                key.architecture.c_str(), name_of(key).c_str(), key.threads, key.min_blocks,
                number(" registers"), number(" bytes stack frame"), number(" bytes spill stores"),
                number(" bytes spill loads"), number(" bytes smem"), row.step.shared_bytes, row.ms,
                config_of(key).c_str(), why.empty() ? "" : "  <- ", why.c_str());
    if (row.log == kPtx) std::printf("%-8s %s\n", "", kPtx);
    bad += why.empty() ? 0 : 1;
    ms += row.ms;
  }
  std::printf("kernels: %zu by NVRTC %d.%d, %.0f s of compiling, %d of them bad\n", rows.size(),
              nvrtc_version() / 1000, nvrtc_version() % 1000 / 10, ms / 1000, bad);
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace chunkscan::cuda

int main(int argc, char** argv) {
  using namespace chunkscan::cuda;
  std::vector<std::string> architectures(argv + 1, argv + argc);
  if (architectures.empty()) {
    architectures = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"};
  }
  if (const std::string why = nvrtc_unavailable(); !why.empty()) {
    std::printf("kernels: skipped: %s\n", why.c_str());
    return 0;
  }
  try {
    std::vector<Row> rows = rows_for(architectures);
    std::fprintf(stderr, "kernels: compiling %zu\n", rows.size());
    compile_all(rows);
    return report(rows);
  } catch (const chunkscan::Error& error) {
    std::fprintf(stderr, "kernels: %s\n", error.what());
    return 1;
  }
}
