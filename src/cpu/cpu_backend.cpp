#include "cpu/cpu_backend.h"

#include <algorithm>
#include <span>
#include <vector>

#include "chunkscan/backends.h"
#include "cpu/kernels.h"
#include "cpu/layout.h"
#include "op/sentence.h"
#include "plan.h"

namespace chunkscan {

namespace {

// Multiples of the tallest tile near the best of 16..128 on Zen 5. A shorter chunk does fewer
// operations, a longer one passes over the state less often; C B^T, which grows with q, is not
// shared by heads where each has its own group.
constexpr int kDefaultChunk = 48;
constexpr int kDefaultChunkUnshared = 36;
constexpr int kMostChunk = 256;  // a longer one only adds operations

bool all_bf16(const Problem& problem) {
  return problem.x == DType::kBF16 && problem.B == DType::kBF16 && problem.C == DType::kBF16;
}

// Native bf16 products are for those who ask: 1.5x as fast, but inputs that cancel (x alternating
// between 1 and -1 over a slow decay) leave the bf16 bound, which fp32 products never do.
Isa default_isa() {
  const auto isas = cpu_isas();
  return isas.front() == Isa::kAvx512Bf16 ? isas[1] : isas.front();
}

Config default_config(const Problem& problem, const DeviceInfo&) {
  Config config;
  // One head alone is cut into slices of p, each of which would need all of C B^T: token by token
  // is 15 % faster on two cores, and 3 % slower on one (Zen 5, p 64, n 128).
  config.route = problem.h == 1 ? Route::kRecurrence : Route::kWalk;
  config.q = problem.chunk_size == 0
                 ? (problem.heads_per_group() == 1 ? kDefaultChunkUnshared : kDefaultChunk)
                 : static_cast<int>(std::min<std::int64_t>(problem.chunk_size, kMostChunk));
  config.isa = default_isa();
  return config;
}

std::string refuses_config(const Problem& problem, const DeviceInfo&, const Config& config) {
  if (config.q < 1 || config.q > kMostChunk) {
    return "config: expected q in 1.." + std::to_string(kMostChunk) + ", got " +
           std::to_string(config.q);
  }
  if (config.state != Tiles{} || config.out != Tiles{}) {
    return "config: expected no tiles on the CPU, got \"" + to_string(config) + "\"";
  }
  if (config.isa == Isa::kAvx512Bf16 && !all_bf16(problem)) {
    return "config: expected x, B and C of bf16 with isa=avx512_bf16, got " +
           std::string(name_of(problem.x)) + ", " + name_of(problem.B) + ", " + name_of(problem.C);
  }
  return "";
}

std::vector<Config> candidates(const Problem& problem, const DeviceInfo& device) {
  std::vector<Config> configs;
  Config config = default_config(problem, device);
  config.route = Route::kWalk;
  for (int q : {16, 24, 36, 48, 64, 96, 128, 192, 256}) {
    config.q = q;
    configs.push_back(config);
  }
  config = default_config(problem, device);
  for (Route route : {Route::kStaged, Route::kRecurrence}) {
    config.route = route;
    configs.push_back(config);
  }
  return configs;
}

// A plan may be for another machine.
void prepare(const PlanData& plan) {
  const auto isas = cpu_isas();
  if (std::find(isas.begin(), isas.end(), plan.config.isa) != isas.end()) return;
  std::string names;
  for (Isa isa : isas) names += (names.empty() ? "" : " | ") + std::string(name_of(isa));
  refuse_input("config", "isa=" + names + " on this machine",
               std::string("isa=") + name_of(plan.config.isa), ErrorKind::kUnsupported);
}

void run(const PlanData& plan, const Buffers& buffers, void* workspace, void*) {
  prepare(plan);  // nobody has to have called it, and other instructions would end the process
  cpu_kernels(plan.config.isa)
      .run(plan.problem, plan.config, buffers, plan.threads, static_cast<std::byte*>(workspace));
}

}  // namespace

Backend cpu_backend() {
  Backend row{};
  row.name = "cpu";
  row.unavailable = [] { return std::string(); };
  row.device = DeviceKind::kCpu;
  row.refuses = [](const Problem&, const DeviceInfo&) { return std::string(); };
  row.default_config = default_config;
  row.refuses_config = refuses_config;
  row.candidates = candidates;
  row.complete = [](PlanData& plan) {
    plan.workspace_bytes = CpuLayout(plan.problem, plan.config, plan.threads).total;
  };
  row.prepare = prepare;
  row.run = run;
  return row;
}

namespace {

std::vector<std::string> names_of(std::span<const Isa> isas) {
  std::vector<std::string> names;
  for (Isa isa : isas) names.emplace_back(name_of(isa));
  return names;
}

}  // namespace

std::vector<std::string> cpu_instruction_sets() { return names_of(cpu_isas()); }

std::vector<std::string> all_cpu_instruction_sets() { return names_of(all_isas()); }

}  // namespace chunkscan
