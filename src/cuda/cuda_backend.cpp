#include "cuda/cuda_backend.h"

#include <algorithm>

#include "chunkscan/error.h"
#include "chunkscan/pack.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/pack.h"
#include "cuda/scratch.h"
#include "plan.h"

namespace chunkscan {

namespace {

using cuda::ContextGuard;
using cuda::Family;
using cuda::StagedPlan;

const StagedPlan& details(const PlanData& plan) {
  return *static_cast<const StagedPlan*>(plan.details.get());
}

cuda::CUstream stream_of(void* stream) { return static_cast<cuda::CUstream>(stream); }

template <const Family& family>
void complete(PlanData& plan) {
  auto staged =
      std::make_shared<StagedPlan>(family.plan(plan.problem, plan.device_info, plan.config));
  plan.workspace_bytes = staged->workspace.total;
  plan.details = std::move(staged);
}

void prepare(const PlanData& plan) {
  const ContextGuard guard(plan.device.index);
  std::vector<cuda::KernelKey> keys;
  for (const cuda::Step& kernel : kernels_of(plan)) keys.push_back(kernel.key);
  cuda::prepare(keys);
}

template <const Family& family>
void run(const PlanData& plan, const Buffers& buffers, void* workspace, void* stream) {
  const ContextGuard guard(plan.device.index);
  cuda::run_staged(family, {plan.problem, plan.device_info, plan.config, details(plan), buffers,
                            static_cast<std::byte*>(workspace), stream_of(stream)});
}

// Whether some GPU here is of the kind; the plan's own is asked by `refuses`.
template <int major>
std::string unavailable() {
  if (std::string why = cuda::driver_unavailable(); !why.empty()) return why;
  for (const DeviceInfo& device : cuda::devices()) {
    if (major == 0 ? device.major >= 8 : device.major == major) return "";
  }
  return major == 0
             ? "expected a GPU of compute capability 8.0 or later, got none"
             : "expected a GPU of compute capability " + std::to_string(major) + ".x, got none";
}

template <const Family& family>
Backend row() {
  Backend row{};
  row.device = DeviceKind::kCuda;
  row.refuses = family.refuses;
  row.default_config = family.default_config;
  row.refuses_config = family.refuses_config;
  row.candidates = family.candidates;
  row.complete = complete<family>;
  row.prepare = prepare;
  row.run = run<family>;
  row.take_scratch = [](const PlanData& plan, void* stream) {
    const ContextGuard guard(plan.device.index);
    return cuda::take_scratch(plan.device.index, plan.workspace_bytes, stream_of(stream));
  };
  row.give_scratch = [](const PlanData& plan, void* scratch, void* stream) {
    const ContextGuard guard(plan.device.index);
    cuda::give_scratch(scratch, stream_of(stream));
  };
  row.copy_to_host = [](const PlanData& plan, void* to, const void* from, std::size_t bytes,
                        void* stream) {
    const ContextGuard guard(plan.device.index);
    const auto source = reinterpret_cast<cuda::CUdeviceptr>(from);
    cuda::check(cuda::driver().cuMemcpyDtoHAsync(to, source, bytes, stream_of(stream)),
                "copy from a device");
    cuda::check(cuda::driver().cuStreamSynchronize(stream_of(stream)), "wait for a stream");
  };
  return row;
}

}  // namespace

Backend sm90_backend() {
  Backend backend = row<cuda::kSm90>();
  backend.name = "cuda/sm90";
  backend.unavailable = unavailable<9>;
  return backend;
}

Backend portable_backend() {
  Backend backend = row<cuda::kPortable>();
  backend.name = "cuda/portable";
  backend.unavailable = unavailable<0>;
  return backend;
}

std::vector<cuda::Step> kernels_of(const PlanData& plan) { return cuda::kernels_of(details(plan)); }

std::size_t write_pack(std::span<const Plan> plans, const std::string& path,
                       const PackProgress& progress) {
  if (plans.empty())
    throw Error(ErrorKind::kInput, "[pack] plans: expected at least one, got none");
  std::vector<cuda::KernelKey> keys;
  for (const Plan& plan : plans) {
    const PlanData& data = plan.data();
    if (data.backend->device != DeviceKind::kCuda) {
      throw Error(ErrorKind::kInput,
                  std::string("[pack] plan: expected one of a cuda/ backend, got one of ") +
                      data.backend->name + ", which has no kernels to compile");
    }
    for (const cuda::Step& kernel : kernels_of(data)) {
      const bool known = std::find(keys.begin(), keys.end(), kernel.key) != keys.end();
      if (!known) keys.push_back(kernel.key);
    }
  }
  cuda::write_pack(keys, path, progress);
  return keys.size();
}

}  // namespace chunkscan
