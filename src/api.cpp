// The spine: validate -> plan -> prepare -> run.
#include <cstdlib>
#include <memory>
#include <new>

#include "chunkscan/chunkscan.h"
#include "op/buffers.h"
#include "plan.h"
#include "validate.h"

namespace chunkscan {

namespace {

constexpr std::size_t kAlignment = 64;

// Scratch that a thread keeps for its next call to forward().
class Scratch {
 public:
  void* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();
      bytes_ = 0;
      const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      memory_.reset(std::aligned_alloc(kAlignment, rounded));
      if (memory_ == nullptr) {
        throw Error(ErrorKind::kRuntime, "[forward] workspace: expected " + std::to_string(bytes) +
                                             " bytes of memory, got none");
      }
      bytes_ = rounded;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(void* pointer) const { std::free(pointer); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_ = 0;
};

void run_on(const PlanData& plan, const Problem& problem, const Buffers& buffers, void* workspace,
            void* stream) {
  if (plan.backend->device == DeviceKind::kCpu) validate_contents(problem, buffers);
  plan.backend->run(plan, buffers, workspace, stream);
}

}  // namespace

const char* version() {
#define CHUNKSCAN_STRING_(x) #x
#define CHUNKSCAN_STRING(x) CHUNKSCAN_STRING_(x)
  return CHUNKSCAN_STRING(CHUNKSCAN_VERSION_MAJOR) "." CHUNKSCAN_STRING(
      CHUNKSCAN_VERSION_MINOR) "." CHUNKSCAN_STRING(CHUNKSCAN_VERSION_PATCH);
#undef CHUNKSCAN_STRING
#undef CHUNKSCAN_STRING_
}

void forward(const Inputs& inputs, const Outputs& outputs, const Options& options, void* stream) {
  const Problem problem = validate_problem(inputs, outputs, options);
  const Device device = validate_memory(inputs, outputs);
  const Plan plan = plan_for(problem, device.kind, options);
  prepare(plan);
  thread_local Scratch scratch;
  run_on(plan.data(), problem, buffers_of(inputs, outputs),
         scratch.at_least(plan.workspace_bytes()), stream);
}

Plan make_plan(const Inputs& inputs, const Outputs& outputs, const Options& options) {
  return plan_for(validate_problem(inputs, outputs, options), inputs.x.device.kind, options);
}

void prepare(const Plan& plan) { plan.data().backend->prepare(plan.data()); }

void run(const Plan& plan, const Inputs& inputs, const Outputs& outputs, void* workspace,
         void* stream) {
  const Problem& problem = plan.data().problem;
  require_fits(problem, inputs, outputs);
  run_on(plan.data(), problem, buffers_of(inputs, outputs), workspace, stream);
}

std::vector<BackendInfo> backends() {
  std::vector<BackendInfo> infos;
  for (const Backend& backend : all_backends()) {
    std::string reason = backend.unavailable();
    infos.push_back({backend.name, reason.empty(), reason});
  }
  return infos;
}

}  // namespace chunkscan
