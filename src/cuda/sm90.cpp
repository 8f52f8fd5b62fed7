// The kernels for compute capability 9.0: what they take, which tiles, their launches.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "cuda/driver.h"
#include "cuda/launch.h"

namespace chunkscan::cuda {

namespace {

// Config::state: p_tile, warpgroups, stages. Config::out: heads, p_tile, stages, bc_stages.
FwdPassStateConfig state_config(const Problem& problem, const Config& config) {
  FwdPassStateConfig c;
  c.p = static_cast<int>(problem.p);
  c.n = static_cast<int>(problem.n);
  c.q = config.q;
  c.io = element_of(problem.x);
  c.packing = packing_of(problem);
  c.ragged = c.packing != Packing::kNone || problem.state_every % config.q != 0;
  c.p_tile = config.state[0];
  c.warpgroups = config.state[1];
  c.stages = config.state[2];
  return c;
}

ComputeOutConfig out_config(const Problem& problem, const Config& config) {
  ComputeOutConfig c;
  const FwdPassStateConfig state = state_config(problem, config);
  c.p = state.p;
  c.n = state.n;
  c.q = state.q;
  c.io = state.io;
  c.packing = state.packing;
  c.ragged = state.ragged;
  c.z = problem.z.has_value();
  c.p_tile = config.out[1];
  c.stages = config.out[2];
  c.bc_stages = config.out[3];
  return c;
}

Config default_config(const Problem& problem, const DeviceInfo& device);
std::string refuses_config(const Problem& problem, const DeviceInfo& device, const Config& config);

std::string refuses(const Problem& problem, const DeviceInfo& device) {
  if (device.major != 9) {
    return "device: expected compute capability 9.0 with cuda/sm90, got " +
           std::to_string(device.major) + "." + std::to_string(device.minor);
  }
  const DType io = problem.x;
  if (io != DType::kBF16 || problem.B != io || problem.C != io || problem.z.value_or(io) != io) {
    return "x, B, C, z: expected bf16 with cuda/sm90, got " + std::string(name_of(problem.x)) +
           ", " + name_of(problem.B) + ", " + name_of(problem.C) + ", " +
           name_of(problem.z.value_or(io));
  }
  if (problem.p > 128 || problem.n > 256) {
    return "x: expected p <= 128 and n <= 256 with cuda/sm90, got p = " +
           std::to_string(problem.p) + ", n = " + std::to_string(problem.n);
  }
  constexpr std::int64_t kMostTokens = (std::int64_t{1} << 31) - 1;  // coordinates of TMA
  if (problem.l > kMostTokens) {
    return "x: expected l < 2^31 with cuda/sm90, got " + std::to_string(problem.l);
  }
  constexpr Alignment kWanted;
  if (!problem.alignment.serves(kWanted)) {
    return "x, B, C, z, y: expected addresses and strides that are multiples of 16 bytes, and a "
           "contiguous last dimension, with cuda/sm90, got others";
  }
  // Where a device has less shared memory than the usual one, the tiles of some sizes do not fit.
  return refuses_config(problem, device, default_config(problem, device));
}

std::string refuses_config(const Problem& problem, const DeviceInfo& device, const Config& config) {
  if (config.route != Route::kStaged || config.isa != Isa::kNone) {
    return "config: expected staged with cuda/sm90, got \"" + to_string(config) + "\"";
  }
  if (config.q != 64 && config.q != 128) {
    return "config: expected q=64 | 128 with cuda/sm90, got q=" + std::to_string(config.q);
  }
  const FwdPassStateConfig state = state_config(problem, config);
  const int p_tile = state.p_tile;
  if ((p_tile != 16 && p_tile != 32 && p_tile != 64 && p_tile != 128) || state.warpgroups < 1 ||
      state.warpgroups > 2 || state.n_pad() % (64 * state.warpgroups) != 0 || state.stages < 2) {
    return "config: expected state=<p_tile 16 | 32 | 64 | 128>x<warpgroups 1 | 2 that divide n / "
           "64>x<stages from 2>, got \"" +
           to_string(config) + "\"";
  }
  const ComputeOutConfig out = out_config(problem, config);
  const bool whole_tiles = out.p_slices() <= 1 || out.p_tile == 64 || out.p_tile == 128;
  const int heads = config.out[0];
  if (heads < 1 || problem.heads_per_group() % heads != 0 || out.p_tile < 1 || out.p_tile > 128 ||
      !whole_tiles || out.stages < 1 || out.bc_stages < 1) {
    return "config: expected out=<heads that divide h / g>x<p_tile 64 | 128>x<stages>x<stages of "
           "B and C>, got \"" +
           to_string(config) + "\"";
  }
  const std::int64_t most = device.shared_per_block_optin;
  const int bytes = std::max(state.shared_bytes(), out.shared_bytes());
  if (bytes > most) {
    return "config: expected at most " + std::to_string(most) + " bytes of shared memory, got " +
           std::to_string(bytes) + " with \"" + to_string(config) + "\"";
  }
  return "";
}

// Slices of the state, the largest first. A larger one reads x and B fewer times.
std::vector<Tiles> slices_of(const Problem& problem) {
  const int width = width_of(static_cast<int>(problem.p));
  std::vector<Tiles> slices;
  if (problem.n > 64) slices.push_back({width, 2, 3});
  slices.push_back({width, 1, 4});
  if (width > 32) slices.push_back({32, 1, 6});
  return slices;
}

// The largest slices that leave work for every multiprocessor.
Tiles state_tiles(const Problem& problem, const DeviceInfo& device, const Config& config) {
  const std::int64_t walks = problem.sequences * problem.h;
  const std::vector<Tiles> slices = slices_of(problem);
  for (const Tiles& tiles : slices) {
    Config candidate = config;
    candidate.state = tiles;
    const FwdPassStateConfig c = state_config(problem, candidate);
    if (problem.batch_invariant || walks * c.p_slices() * c.n_slices() >= device.multiprocessors) {
      return tiles;
    }
  }
  return slices.back();
}

// As many heads share C B^T as leave a turn for about every multiprocessor, and as many stages as
// fit.
Tiles out_tiles(const Problem& problem, const DeviceInfo& device, const Config& config) {
  const std::int64_t per_group = problem.heads_per_group();
  const std::int64_t slots = slots_of(problem, config.q);
  int heads = 1;
  for (int candidate = 2; candidate <= 16; ++candidate) {
    if (per_group % candidate != 0) continue;
    const bool enough = slots * (problem.h / candidate) * 10 >= 9 * device.multiprocessors;
    if (enough || (problem.batch_invariant && candidate <= 8)) heads = candidate;
  }
  const auto fits = [&](const Tiles& tiles, std::int64_t bytes) {
    Config candidate = config;
    candidate.out = tiles;
    return out_config(problem, candidate).shared_bytes() <= bytes;
  };
  // One warpgroup leaves room for a second block, which hides more than stages do.
  const Tiles small = {heads, 64, 2, 1};
  if (config.q == 64 && fits(small, device.shared_per_multiprocessor / 2 - 1024)) return small;
  for (const Tiles& tiles : {Tiles{heads, 64, 2, 2}, Tiles{heads, 64, 3, 1}, small}) {
    if (fits(tiles, device.shared_per_block_optin)) return tiles;
  }
  return {heads, 64, 1, 1};
}

// Short sequences: where 128 tokens a chunk would leave multiprocessors idle or chunks half empty.
int chunk_of_plan(const Problem& problem, const DeviceInfo& device) {
  if (problem.chunk_size != 0) return problem.chunk_size <= 64 ? 64 : 128;
  if (problem.batch_invariant) return 128;
  const bool few = slots_of(problem, 128) * problem.h < 4 * device.multiprocessors;
  return problem.l <= 64 || (few && problem.l <= 1024) ? 64 : 128;
}

Config default_config(const Problem& problem, const DeviceInfo& device) {
  Config config;
  config.route = Route::kStaged;
  for (config.q = chunk_of_plan(problem, device);; config.q = 64) {
    config.state = state_tiles(problem, device, config);
    config.out = out_tiles(problem, device, config);
    if (config.q == 64 || refuses_config(problem, device, config).empty()) return config;
  }
}

std::vector<Config> candidates(const Problem& problem, const DeviceInfo& device) {
  std::vector<Config> configs;
  const auto add = [&](const Config& config) {
    if (refuses_config(problem, device, config).empty()) configs.push_back(config);
  };
  for (int q : {64, 128}) {
    Config base = default_config(problem, device);
    base.q = q;
    base.out = out_tiles(problem, device, base);
    for (int p_tile : {16, 32, 64, 128}) {
      for (int warpgroups : {1, 2}) {
        for (int stages : {2, 3, 4, 6}) {
          Config config = base;
          config.state = {p_tile, warpgroups, stages};
          add(config);
        }
      }
    }
    for (int heads : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16}) {
      for (int p_tile : {64, 128}) {
        for (const auto& [stages, bc_stages] :
             {std::array{1, 1}, {2, 1}, {3, 1}, {4, 1}, {2, 2}, {3, 2}}) {
          Config config = base;
          config.out = {heads, p_tile, stages, bc_stages};
          if (p_tile < 128 || problem.p > 64) add(config);
        }
      }
    }
  }
  return configs;
}

Step state_step(const DeviceInfo& device, const FwdPassStateConfig& c) {
  Step step;
  step.key = key_of(device, "sm90/fwd_pass_state.cuh", "fwd_pass_state",
                    expression("FwdPassStateConfig", c.p, c.n, c.q, c.io, c.packing, c.ragged,
                               c.p_tile, c.warpgroups, c.stages),
                    "FwdPassStateParams", c.threads());
  step.shared_bytes = static_cast<unsigned>(c.shared_bytes());
  return step;
}

std::array<Step, kSteps> steps_of(const Problem& problem, const DeviceInfo& device,
                                  const Config& config) {
  const FwdPassStateConfig s = state_config(problem, config);
  const ComputeOutConfig o = out_config(problem, config);
  ChunkCumsumConfig cumsum;
  cumsum.q = config.q;
  cumsum.packing = s.packing;
  cumsum.split_weights = s.io == Element::kBF16;

  std::array<Step, kSteps> steps;
  add_shared_steps(problem, device, cumsum, steps);
  steps[kFwdPassState] = state_step(device, s);

  // 1 KiB of each block's shared memory is the system's.
  const std::int64_t fit = device.shared_per_multiprocessor / (o.shared_bytes() + 1024);
  const int blocks =
      o.warpgroups() == 1 ? static_cast<int>(std::clamp<std::int64_t>(fit, 1, 2)) : 1;
  steps[kComputeOut].key = key_of(device, "sm90/compute_out.cuh", "compute_out",
                                  expression("ComputeOutConfig", o.p, o.n, o.q, o.io, o.packing,
                                             o.ragged, o.z, o.p_tile, o.stages, o.bc_stages),
                                  "ComputeOutParams", o.threads(), blocks);
  steps[kComputeOut].shared_bytes = static_cast<unsigned>(o.shared_bytes());
  steps[kComputeOut].blocks_per_multiprocessor = blocks;
  return steps;
}

StagedPlan plan(const Problem& problem, const DeviceInfo& device, const Config& config) {
  StagedPlan plan;
  const int elements = state_elements(static_cast<int>(problem.p), static_cast<int>(problem.n));
  const FwdPassStateConfig state = state_config(problem, config);
  require_grids(problem, config.q, state.p_slices() * state.n_slices());
  plan.workspace = workspace_of(problem, config.q, false, std::int64_t{2} * elements);
  plan.steps = steps_of(problem, device, config);
  Config other = config;
  for (int q : {64, 128}) {
    if (problem.chunk_size != 0 && q != config.q) continue;
    other.q = q;
    other.out = out_tiles(problem, device, other);
    std::optional<Config> fits;
    for (const Tiles& tiles : slices_of(problem)) {
      other.state = tiles;
      if (!refuses_config(problem, device, other).empty()) continue;
      fits = other;
      plan.siblings.push_back(state_step(device, state_config(problem, other)));
    }
    if (!fits) continue;
    const std::array<Step, kSteps> steps = steps_of(problem, device, *fits);
    plan.siblings.insert(plan.siblings.end(), {steps[kChunkCumsum], steps[kComputeOut]});
  }
  return plan;
}

// Rows of `width` of the last dimension, q tokens at a time. (b, l, h or g, p or n).
TensorMap tensor_map(const Array& array, const Problem& problem, std::int64_t columns,
                     std::int64_t heads, int width, int q) {
  const auto& strides = array.strides;
  // Where there is one row the stride may be anything, but must look like a stride.
  const auto bytes = [&](std::int64_t size, std::int64_t stride) {
    return static_cast<std::uint64_t>(size > 1 ? stride * array.element_bytes : 16);
  };
  const std::uint64_t sizes[] = {
      static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(heads),
      static_cast<std::uint64_t>(problem.l), static_cast<std::uint64_t>(problem.b)};
  const std::uint64_t steps[] = {bytes(heads, strides[2]), bytes(problem.l, strides[1]),
                                 bytes(problem.b, strides[0])};
  const std::uint32_t box[] = {static_cast<std::uint32_t>(width), 1, static_cast<std::uint32_t>(q),
                               1};
  const std::uint32_t ones[] = {1, 1, 1, 1};
  TensorMap map;
  check(driver().cuTensorMapEncodeTiled(
            reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, array.data,
            sizes, steps, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
            width == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
            : width == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                          : CU_TENSOR_MAP_SWIZZLE_32B,
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "describe a tensor");
  return map;
}

u16* states_of(const StagedCall& call) {
  return reinterpret_cast<u16*>(call.workspace + call.plan.workspace.states);
}

void run_fwd_pass_state(const StagedCall& call) {
  const Problem& problem = call.problem;
  const FwdPassStateConfig c = state_config(problem, call.config);
  FwdPassStateParams params{};
  fill_common(call, params);
  params.states = states_of(call);
  if (problem.l > 0 && problem.sequences > 0) {
    params.x_map = tensor_map(call.buffers.x, problem, problem.p, problem.h, c.width(), c.q);
    params.B_map = tensor_map(call.buffers.B, problem, problem.n, problem.g, 64, c.q);
  }
  launch(call.plan.steps[kFwdPassState],
         problem.sequences * problem.h * c.p_slices() * c.n_slices(), &params, call.stream,
         device_overlaps(call.device));
}

void run_compute_out(const StagedCall& call) {
  const Problem& problem = call.problem;
  const ComputeOutConfig c = out_config(problem, call.config);
  const Step& step = call.plan.steps[kComputeOut];
  ComputeOutParams params{};
  fill_common(call, params);
  if (problem.l == 0 || problem.sequences == 0) return;  // TMA describes no tensor without tokens
  params.states = states_of(call);
  params.x_map = tensor_map(call.buffers.x, problem, problem.p, problem.h, c.width(), c.q);
  if (c.z) {
    params.z_map = tensor_map(call.buffers.z, problem, problem.p, problem.h, c.width(), c.q);
  }
  params.B_map = tensor_map(call.buffers.B, problem, problem.n, problem.g, 64, c.q);
  params.C_map = tensor_map(call.buffers.C, problem, problem.n, problem.g, 64, c.q);
  const std::int64_t turns = params.chunking.slots * (problem.h / params.heads);
  launch(step, resident_blocks(call, step, turns), &params, call.stream,
         device_overlaps(call.device));
}

}  // namespace

const Family kSm90 = {refuses, default_config,     refuses_config, candidates,
                      plan,    run_fwd_pass_state, run_compute_out};

}  // namespace chunkscan::cuda
