// Plans for GPUs, none of which has to be here.
#include <gmock/gmock.h>

#include "chunkscan/chunkscan.h"
#include "cuda/cuda_backend.h"
#include "cuda/device.h"
#include "plan.h"
#include "testkit/shapes.h"
#include "validate.h"

namespace chunkscan {
namespace {

struct Traits {
  DType dtype = DType::kBF16;
  Packing packing = Packing::kNone;
  bool z = false;
};

std::vector<Traits> all_traits() {
  std::vector<Traits> all;
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    for (Packing packing : {Packing::kNone, Packing::kSeqIdx, Packing::kCuSeqlens}) {
      for (bool z : {false, true}) all.push_back({dtype, packing, z});
    }
  }
  return all;
}

// Shapes without memory, validated as make_plan() does it.
Problem problem_of(const testkit::Model& model, const Traits& traits, std::int64_t b,
                   std::int64_t l) {
  if (traits.packing == Packing::kCuSeqlens) b = 1;
  Inputs in;
  in.x = TensorView(nullptr, traits.dtype, {b, l, model.h, model.p});
  in.dt = TensorView(nullptr, traits.dtype, {b, l, model.h});
  in.A = TensorView(nullptr, DType::kF32, {model.h});
  in.B = in.C = TensorView(nullptr, traits.dtype, {b, l, model.g, model.n});
  if (traits.z) in.z = in.x;
  if (traits.packing == Packing::kSeqIdx) in.seq_idx = TensorView(nullptr, DType::kI32, {b, l});
  if (traits.packing == Packing::kCuSeqlens) in.cu_seqlens = TensorView(nullptr, DType::kI32, {9});
  Outputs out;
  out.y = in.x;
  return validate_problem(in, out, {});
}

std::string text_of(const testkit::Model& model, const Problem& problem, const DeviceInfo& device) {
  return std::string(model.name) + ": " + to_string(problem) + " on " + device.architecture +
         " with " + std::to_string(device.shared_per_block_optin) + " bytes";
}

// A block's shared memory, as small as any GPU has it and as large.
DeviceInfo device_with(const char* architecture, int kib) {
  DeviceInfo device = cuda::device_named(architecture);
  device.shared_per_block_optin = kib * 1024;
  device.shared_per_multiprocessor = (kib + 1) * 1024;
  return device;
}

PlanData plan_with(const Backend& backend, const Problem& problem, const DeviceInfo& device) {
  PlanData plan;
  plan.problem = problem;
  plan.backend = &backend;
  plan.device_info = device;
  plan.config = backend.default_config(problem, device);
  backend.complete(plan);
  return plan;
}

// Both families, wherever they take the problem.
TEST(GpuPlan, FitsWhateverTheSharedMemory) {
  const Backend families[] = {sm90_backend(), portable_backend()};
  int hopper = 0;
  for (const testkit::Model& model : testkit::models()) {
    for (const Traits& traits : all_traits()) {
      const Problem problem = problem_of(model, traits, 2, 3000);
      for (int kib : {48, 64, 99, 163, 227}) {
        for (const char* architecture : {"sm_80", "sm_90a"}) {
          const DeviceInfo device = device_with(architecture, kib);
          SCOPED_TRACE(text_of(model, problem, device));
          for (const Backend& backend : families) {
            const bool portable = std::string(backend.name) == "cuda/portable";
            if (const std::string why = backend.refuses(problem, device); !why.empty()) {
              EXPECT_FALSE(portable) << why;
              continue;
            }
            hopper += portable ? 0 : 1;
            const PlanData plan = plan_with(backend, problem, device);
            const Config& config = plan.config;
            EXPECT_EQ(backend.refuses_config(problem, device, config), "");
            EXPECT_EQ(parse_config(to_string(config), Config()), config) << to_string(config);
            for (const cuda::Step& kernel : kernels_of(plan)) {
              const std::int64_t blocks = kernel.key.min_blocks;
              EXPECT_LE(kernel.shared_bytes, device.shared_per_block_optin) << kernel.key.body;
              EXPECT_LE((kernel.shared_bytes + 1024) * blocks, device.shared_per_multiprocessor)
                  << kernel.key.body;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(hopper, 0);
}

TEST(GpuPlan, HopperTakesEveryModelInBF16) {
  const Backend backend = sm90_backend();
  const DeviceInfo device = cuda::device_named("sm_90a");
  for (const testkit::Model& model : testkit::models()) {
    for (const Traits& traits : all_traits()) {
      const Problem problem = problem_of(model, traits, 2, 3000);
      const std::string why = backend.refuses(problem, device);
      EXPECT_EQ(why.empty(), traits.dtype == DType::kBF16) << model.name << ": " << why;
    }
  }
}

// A server that has had one call of a model compiles nothing for the next ones, whatever their
// sizes and options.
TEST(GpuPlan, OtherSizesOfTheSameModelNeedNoOtherKernels) {
  struct Size {
    std::int64_t b, l;
    bool options;
  };
  constexpr Size kSizes[] = {{1, 1, false},    {1, 64, false},     {1, 500, false},
                             {1, 4096, false}, {8, 131072, false}, {256, 1024, false},
                             {1, 500, true},   {8, 4096, true}};
  const Backend families[] = {sm90_backend(), portable_backend()};
  for (const char* architecture : {"sm_80", "sm_90a", "sm_120a"}) {
    const DeviceInfo device = cuda::device_named(architecture);
    for (const testkit::Model& model : testkit::models()) {
      for (const Traits& traits : all_traits()) {
        for (const Backend& backend : families) {
          std::vector<std::vector<cuda::KernelKey>> keys;
          for (const Size& size : kSizes) {
            Problem problem = problem_of(model, traits, size.b, size.l);
            if (size.options) {
              problem.batch_invariant = problem.dt_softplus = true;
              problem.D = problem.dt_bias = problem.initial_states = problem.final_states =
                  problem.log_decay = DType::kF32;
            }
            if (!backend.refuses(problem, device).empty()) continue;
            keys.emplace_back();
            for (const cuda::Step& kernel : kernels_of(plan_with(backend, problem, device))) {
              keys.back().push_back(kernel.key);
            }
          }
          for (const auto& of_one : keys) {
            EXPECT_THAT(of_one, testing::UnorderedElementsAreArray(keys.front()))
                << backend.name << ", " << model.name << ", " << name_of(traits.dtype);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace chunkscan
