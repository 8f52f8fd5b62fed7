// The kernels for compute capability 8.0 and later: what they take, which tiles, their launches.
#include <algorithm>

#include "cuda/launch.h"

namespace chunkscan::cuda {

namespace {

// x, B and C meet in products of one type: their own where they agree, else fp32.
Element io_of(const Problem& problem) {
  const bool same = problem.x == problem.B && problem.x == problem.C;
  return same ? element_of(problem.x) : Element::kF32;
}

// Copies move elements as they are.
Load load_of(const Problem& problem, DType dtype, std::uint8_t alignment) {
  if (element_of(dtype) != io_of(problem)) return Load::kElements;
  if (alignment >= 16) return Load::kCopy16;
  if (alignment >= 8) return Load::kCopy8;
  return alignment >= 4 ? Load::kCopy4 : Load::kElements;
}

// Config::state: p_tile, n_tile, warps_p, warps_n, token_tile, stages.
PortableFwdPassStateConfig state_config(const Problem& problem, const Config& config) {
  PortableFwdPassStateConfig c;
  c.p = static_cast<int>(problem.p);
  c.n = static_cast<int>(problem.n);
  c.q = config.q;
  c.io = io_of(problem);
  c.packing = packing_of(problem);
  c.x_load = load_of(problem, problem.x, problem.alignment.x);
  c.B_load = load_of(problem, problem.B, problem.alignment.B);
  c.p_tile = config.state[0];
  c.n_tile = config.state[1];
  c.warps_p = config.state[2];
  c.warps_n = config.state[3];
  c.token_tile = config.state[4];
  c.stages = config.state[5];
  return c;
}

// Config::out: heads, p_tile, n_tile, warps, row_tiles, stages.
PortableComputeOutConfig out_config(const Problem& problem, const Config& config) {
  PortableComputeOutConfig c;
  c.p = static_cast<int>(problem.p);
  c.n = static_cast<int>(problem.n);
  c.q = config.q;
  c.io = io_of(problem);
  c.packing = packing_of(problem);
  c.z = problem.z.has_value();
  c.x_load = load_of(problem, problem.x, problem.alignment.x);
  c.B_load = load_of(problem, problem.B, problem.alignment.B);
  c.C_load = load_of(problem, problem.C, problem.alignment.C);
  c.p_tile = config.out[1];
  c.n_tile = config.out[2];
  c.warps = config.out[3];
  c.row_tiles = config.out[4];
  c.stages = config.out[5];
  return c;
}

std::string refuses(const Problem&, const DeviceInfo& device) {
  if (device.major < 8) {
    return "device: expected compute capability 8.0 or later, got " + std::to_string(device.major) +
           "." + std::to_string(device.minor);
  }
  return "";
}

std::string refuses_config(const Problem& problem, const DeviceInfo& device, const Config& config) {
  if (config.route != Route::kStaged || config.isa != Isa::kNone) {
    return "config: expected staged with cuda/portable, got \"" + to_string(config) + "\"";
  }
  if (config.q != 32 && config.q != 64 && config.q != 128 && config.q != 256) {
    return "config: expected q=32 | 64 | 128 | 256 with cuda/portable, got q=" +
           std::to_string(config.q);
  }
  const PortableFwdPassStateConfig s = state_config(problem, config);
  const bool state_tiles = s.warps_p >= 1 && s.warps_n >= 1 && s.warps_p * s.warps_n <= 32 &&
                           s.p_tile % (16 * s.warps_p) == 0 && s.n_tile % (16 * s.warps_n) == 0 &&
                           s.token_tile >= 16 && s.token_tile % 16 == 0 && s.token_tile <= s.q &&
                           s.stages >= 2;
  if (!state_tiles) {
    return "config: expected state=<p_tile>x<n_tile>x<warps of p>x<warps of n>x<token_tile>x"
           "<stages> with tiles of 16 a warp and stages from 2, got \"" +
           to_string(config) + "\"";
  }
  const PortableComputeOutConfig o = out_config(problem, config);
  const bool out_tiles = config.out[0] >= 1 && o.p_tile >= 16 && o.p_tile % 16 == 0 &&
                         o.n_tile >= 16 && o.n_tile % 16 == 0 && o.warps >= 1 && o.warps <= 32 &&
                         o.row_tiles >= 1 && o.row_tiles <= 2 && o.q % o.rows() == 0 &&
                         o.stages >= 2;
  if (!out_tiles) {
    return "config: expected out=<heads>x<p_tile>x<n_tile>x<warps>x<row_tiles>x<stages> with "
           "tiles of 16, warps x row_tiles x 16 rows that divide q and stages from 2, got \"" +
           to_string(config) + "\"";
  }
  const std::int64_t most = device.shared_per_block_optin;
  const int bytes = std::max(s.shared_bytes(), o.shared_bytes());
  if (bytes > most) {
    return "config: expected at most " + std::to_string(most) + " bytes of shared memory, got " +
           std::to_string(bytes) + " with \"" + to_string(config) + "\"";
  }
  return "";
}

int tile_of(std::int64_t size, int most) {
  return std::min(round_up(static_cast<int>(size), 16), most);
}

// As many stages as fit.
Tiles state_tiles(const Problem& problem, const DeviceInfo& device, bool small) {
  const bool wide = io_of(problem) == Element::kF32;
  const int p_tile = tile_of(problem.p, small ? 32 : 64);
  const int n_tile = tile_of(problem.n, small ? 32 : wide ? 64 : 128);
  const int warps_p = p_tile % 32 == 0 ? 2 : 1, warps_n = n_tile % 32 == 0 ? 2 : 1;
  Config config;
  for (int stages = wide ? 3 : 4;; --stages) {
    config.state = {p_tile, n_tile, warps_p, warps_n, 32, stages};
    const int bytes = state_config(problem, config).shared_bytes();
    if (stages == 2 || bytes <= device.shared_per_block_optin) return config.state;
  }
}

// Where few heads would leave multiprocessors idle.
bool wants_small_slices(const Problem& problem, const DeviceInfo& device) {
  return !problem.batch_invariant && problem.sequences * problem.h < 2 * device.multiprocessors;
}

Config default_config(const Problem& problem, const DeviceInfo& device) {
  const bool wide = io_of(problem) != Element::kBF16;
  Config config;
  config.route = Route::kStaged;
  config.state = state_tiles(problem, device, wants_small_slices(problem, device));
  const int heads = static_cast<int>(std::min<std::int64_t>(problem.heads_per_group(), 8));
  const int wanted = problem.chunk_size == 0
                         ? 64
                         : static_cast<int>(std::min<std::int64_t>(problem.chunk_size, 256));
  // From the tiles that are fastest where they fit to those that fit anywhere.
  for (const auto& [q, p_tile, n_tile] :
       {std::array{wanted > 64 ? 128 : 64, wide ? 32 : 64, 128}, std::array{64, 32, 64},
        std::array{32, 32, 32}, std::array{32, 16, 16}}) {
    config.q = q;
    config.out = {heads, tile_of(problem.p, p_tile), tile_of(problem.n, n_tile), q / 16, 1, 2};
    if (refuses_config(problem, device, config).empty()) break;
  }
  return config;
}

std::vector<Config> candidates(const Problem& problem, const DeviceInfo& device) {
  std::vector<Config> configs;
  const auto add = [&](const Config& config) {
    if (refuses_config(problem, device, config).empty()) configs.push_back(config);
  };
  for (int q : {32, 64, 128, 256}) {
    Config base = default_config(problem, device);
    base.q = q;
    base.out[3] = q / 16;
    for (int p_tile : {16, 32, 64}) {
      for (int n_tile : {32, 64, 128}) {
        for (int tokens : {32, 64, 128}) {
          for (int stages : {2, 3, 4}) {
            Config config = base;
            config.state = {
                tile_of(problem.p, p_tile), tile_of(problem.n, n_tile), 0, 0, tokens, stages};
            config.state[2] = config.state[0] % 32 == 0 ? 2 : 1;
            config.state[3] = config.state[1] % 32 == 0 ? 2 : 1;
            add(config);
          }
        }
      }
    }
    for (int heads : {1, 2, 4, 8, 16}) {
      for (int p_tile : {32, 64}) {
        for (int n_tile : {64, 128}) {
          for (int row_tiles : {1, 2}) {
            for (int stages : {2, 3}) {
              Config config = base;
              config.out = {heads,
                            tile_of(problem.p, p_tile),
                            tile_of(problem.n, n_tile),
                            q / (16 * row_tiles),
                            row_tiles,
                            stages};
              add(config);
            }
          }
        }
      }
    }
  }
  return configs;
}

Step state_step(const DeviceInfo& device, const PortableFwdPassStateConfig& c) {
  Step step;
  step.key =
      key_of(device, "portable/fwd_pass_state.cuh", "fwd_pass_state",
             expression("PortableFwdPassStateConfig", c.p, c.n, c.q, c.io, c.packing, c.x_load,
                        c.B_load, c.p_tile, c.n_tile, c.warps_p, c.warps_n, c.token_tile, c.stages),
             "PortableFwdPassStateParams", c.threads());
  step.shared_bytes = static_cast<unsigned>(c.shared_bytes());
  return step;
}

StagedPlan plan(const Problem& problem, const DeviceInfo& device, const Config& config) {
  const PortableFwdPassStateConfig s = state_config(problem, config);
  const PortableComputeOutConfig o = out_config(problem, config);
  ChunkCumsumConfig cumsum;
  cumsum.q = config.q;
  cumsum.packing = s.packing;
  cumsum.compensated = o.compensated();

  StagedPlan plan;
  require_grids(problem, config.q, s.p_slices() * s.n_slices());
  plan.workspace = workspace_of(problem, config.q, cumsum.compensated, state_bytes(s.io, s.p, s.n));
  add_shared_steps(problem, device, cumsum, plan.steps);
  plan.steps[kFwdPassState] = state_step(device, s);
  for (bool small : {true, false}) {
    Config other = config;
    other.state = state_tiles(problem, device, small);
    plan.siblings.push_back(state_step(device, state_config(problem, other)));
  }
  const std::int64_t fit = device.shared_per_multiprocessor / (o.shared_bytes() + 1024);
  const int most = std::max(1, 384 / o.threads());  // more would leave too few registers
  const int blocks = static_cast<int>(std::clamp<std::int64_t>(fit, 1, most));
  plan.steps[kComputeOut].key =
      key_of(device, "portable/compute_out.cuh", "compute_out",
             expression("PortableComputeOutConfig", o.p, o.n, o.q, o.io, o.packing, o.z, o.x_load,
                        o.B_load, o.C_load, o.p_tile, o.n_tile, o.warps, o.row_tiles, o.stages),
             "PortableComputeOutParams", o.threads(), blocks);
  plan.steps[kComputeOut].shared_bytes = static_cast<unsigned>(o.shared_bytes());
  plan.steps[kComputeOut].blocks_per_multiprocessor = blocks;
  return plan;
}

u8* states_of(const StagedCall& call) {
  return reinterpret_cast<u8*>(call.workspace + call.plan.workspace.states);
}

void run_fwd_pass_state(const StagedCall& call) {
  const Problem& problem = call.problem;
  const PortableFwdPassStateConfig c = state_config(problem, call.config);
  PortableFwdPassStateParams params{};
  fill_common(call, params);
  params.x = tensor_of(call.buffers.x, problem.x);
  params.B = tensor_of(call.buffers.B, problem.B);
  params.states = states_of(call);
  launch(call.plan.steps[kFwdPassState],
         problem.sequences * problem.h * c.p_slices() * c.n_slices(), &params, call.stream,
         device_overlaps(call.device));
}

void run_compute_out(const StagedCall& call) {
  const Problem& problem = call.problem;
  const PortableComputeOutConfig c = out_config(problem, call.config);
  const Step& step = call.plan.steps[kComputeOut];
  PortableComputeOutParams params{};
  fill_common(call, params);
  params.x = tensor_of(call.buffers.x, problem.x);
  params.z = tensor_of(call.buffers.z, problem.z);
  params.B = tensor_of(call.buffers.B, problem.B);
  params.C = tensor_of(call.buffers.C, problem.C);
  params.states = states_of(call);
  const std::int64_t splits = (problem.heads_per_group() + params.heads - 1) / params.heads;
  const std::int64_t turns = params.chunking.slots * problem.g * splits * c.row_blocks();
  launch(step, resident_blocks(call, step, turns), &params, call.stream,
         device_overlaps(call.device));
}

}  // namespace

const Family kPortable = {refuses, default_config,     refuses_config, candidates,
                          plan,    run_fwd_pass_state, run_compute_out};

}  // namespace chunkscan::cuda
