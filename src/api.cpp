// The spine: validate -> plan -> prepare -> run.
#include "chunkscan/chunkscan.h"
#include "op/buffers.h"
#include "plan.h"
#include "validate.h"

namespace chunkscan {

namespace {

// Scratch that a thread keeps for its next call to forward().
class Scratch {
 public:
  void* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();
      bytes_ = 0;
      memory_ = aligned_memory(bytes);
      if (memory_ == nullptr) {
        throw Error(ErrorKind::kRuntime, "[forward] workspace: expected " + std::to_string(bytes) +
                                             " bytes of memory, got none");
      }
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  Memory memory_;
  std::size_t bytes_ = 0;
};

// Nothing to write: sizes without tokens may hold any number of heads or rows, and no backend
// should loop over them.
bool all_empty(const Outputs& out) {
  return out.y.elements() == 0 && out.final_states.elements() == 0 &&
         out.chunk_states.elements() == 0 && out.log_decay.elements() == 0;
}

void check_contents(const PlanData& plan, const Buffers& buffers) {
  if (plan.backend->device == DeviceKind::kCpu) validate_contents(plan.problem, buffers);
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
  const Buffers buffers = buffers_of(inputs, outputs);
  check_contents(plan.data(), buffers);
  if (all_empty(outputs)) return;
  thread_local Scratch scratch;
  plan.data().backend->run(plan.data(), buffers, scratch.at_least(plan.workspace_bytes()), stream);
}

Plan make_plan(const Inputs& inputs, const Outputs& outputs, const Options& options) {
  return plan_for(validate_problem(inputs, outputs, options), inputs.x.device.kind, options);
}

void prepare(const Plan& plan) { plan.data().backend->prepare(plan.data()); }

void run(const Plan& plan, const Inputs& inputs, const Outputs& outputs, void* workspace,
         void* stream) {
  const PlanData& data = plan.data();
  require_fits(data.problem, inputs, outputs);
  require_workspace(workspace, data.workspace_bytes);
  const Buffers buffers = buffers_of(inputs, outputs);
  check_contents(data, buffers);
  if (all_empty(outputs)) return;
  data.backend->run(data, buffers, workspace, stream);
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
