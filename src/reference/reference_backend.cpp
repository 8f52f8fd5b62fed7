#include "reference/reference_backend.h"

#include <algorithm>

#include "plan.h"
#include "reference/routes.h"

namespace chunkscan {

namespace {

// Chunks longer than the tokens there are would only ask for scratch.
std::int64_t chunk_length(const Problem& problem, const Config& config) {
  return std::clamp<std::int64_t>(config.q, 1, std::max<std::int64_t>(problem.l, 1));
}

// The table of sequences comes first, then the doubles of the route.
std::size_t table_bytes(const Problem& problem) {
  return static_cast<std::size_t>(problem.sequences) * sizeof(Sequence);
}

// q only matters to route "staged"; chunk_size gives it a value that a config may replace.
Config default_config(const Problem& problem, const DeviceInfo&) {
  constexpr std::int64_t kDefaultChunk = 64, kMaxChunk = 1 << 20;
  Config config;
  config.route = Route::kRecurrence;
  config.q = static_cast<int>(problem.chunk_size > 0 ? std::min(problem.chunk_size, kMaxChunk)
                                                     : kDefaultChunk);
  return config;
}

std::string refuses_config(const Problem&, const DeviceInfo&, const Config& config) {
  if (config.route == Route::kWalk || config.isa != Isa::kNone) {
    return "config: expected recurrence | staged with the reference backend, got \"" +
           to_string(config) + "\"";
  }
  return "";
}

std::size_t workspace_bytes(const Problem& problem, const Config& config) {
  const std::int64_t doubles =
      config.route == Route::kStaged
          ? reference::staged_scratch(problem, chunk_length(problem, config))
          : reference::recurrence_scratch(problem);
  return table_bytes(problem) + static_cast<std::size_t>(doubles) * sizeof(double);
}

void zero_the_rest(const reference::Tensors& T, const Rest& rest) {
  const Problem& problem = T.problem;
  for (std::int64_t h = 0; h < problem.h; ++h) {
    for (std::int64_t p = 0; p < problem.p; ++p) {
      for (std::int64_t t = rest.token; t < problem.l; ++t) T.y.set(0.0, 0, t, h, p);
      if (problem.state_every == 0) continue;
      for (std::int64_t i = rest.row; i < problem.l / problem.state_every; ++i) {
        for (std::int64_t n = 0; n < problem.n; ++n) T.chunk_states.set(0.0, 0, i, h, p, n);
      }
    }
  }
}

void run(const PlanData& plan, const Buffers& buffers, void* workspace, void*) {
  const Problem& problem = plan.problem;
  const reference::Tensors tensors(problem, buffers);
  Sequence* sequences = static_cast<Sequence*>(workspace);
  double* scratch =
      reinterpret_cast<double*>(static_cast<std::byte*>(workspace) + table_bytes(problem));
  fill_sequences(problem, buffers, sequences);
  for (std::int64_t i = 0; i < problem.sequences; ++i) {
    for (std::int64_t h = 0; h < problem.h; ++h) {
      if (plan.config.route == Route::kStaged) {
        reference::staged(tensors, sequences[i], h, chunk_length(problem, plan.config), scratch);
      } else {
        reference::recurrence(tensors, sequences[i], h, scratch);
      }
    }
  }
  if (problem.packing == Packing::kCuSeqlens) {
    zero_the_rest(tensors, rest_behind(problem, sequences));
  }
}

}  // namespace

Backend reference_backend() {
  Backend row{};
  row.name = "reference";
  row.unavailable = [] { return std::string(); };
  row.device = DeviceKind::kCpu;
  row.refuses = [](const Problem&, const DeviceInfo&) { return std::string(); };
  row.default_config = default_config;
  row.refuses_config = refuses_config;
  row.candidates = [](const Problem&, const DeviceInfo&) { return std::vector<Config>(); };
  row.complete = [](PlanData& plan) {
    plan.workspace_bytes = workspace_bytes(plan.problem, plan.config);
  };
  row.prepare = [](const PlanData&) {};
  row.run = run;
  return row;
}

}  // namespace chunkscan
