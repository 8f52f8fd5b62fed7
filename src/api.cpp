// The spine: validate -> plan -> prepare -> run.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "op/buffers.h"
#include "op/sentence.h"
#include "plan.h"
#include "validate.h"

namespace chunkscan {

namespace {

// Host memory that a thread keeps for its next call to forward().
class HostScratch {
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

// Workspace for one run.
class Scratch {
 public:
  Scratch(const PlanData& plan, void* stream) : plan_(plan), stream_(stream) {
    thread_local HostScratch host;
    memory_ = on_device() ? plan.backend->take_scratch(plan, stream)
                          : host.at_least(plan.workspace_bytes);
  }
  ~Scratch() {
    if (!on_device()) return;
    try {
      plan_.backend->give_scratch(plan_, memory_, stream_);
    } catch (const Error&) {  // a broken context, of which the caller's next call into it tells
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* memory() const { return memory_; }

 private:
  bool on_device() const { return plan_.backend->take_scratch != nullptr; }

  const PlanData& plan_;
  void* stream_;
  void* memory_;
};

// Nothing to write: sizes without tokens may hold any number of heads or rows, and no backend
// should loop over them.
bool all_empty(const Outputs& out) {
  return out.y.elements() == 0 && out.final_states.elements() == 0 &&
         out.chunk_states.elements() == 0 && out.log_decay.elements() == 0;
}

// The offsets of cu_seqlens, which may be on a device.
void check_contents(const PlanData& plan, Buffers buffers, void* stream) {
  if (plan.problem.packing != Packing::kCuSeqlens) return;
  std::vector<std::byte> copy;
  if (plan.backend->copy_to_host != nullptr) {
    Array& offsets = buffers.cu_seqlens;
    const std::int64_t reach = offsets.strides[0] * offsets.element_bytes * plan.problem.sequences;
    const std::byte* first = offsets.data + std::min<std::int64_t>(reach, 0);
    copy.resize(static_cast<std::size_t>(std::abs(reach) + offsets.element_bytes));
    plan.backend->copy_to_host(plan, copy.data(), first, copy.size(), stream);
    offsets.data = copy.data() - std::min<std::int64_t>(reach, 0);
  }
  validate_contents(plan.problem, buffers);
}

// Unasked only where that costs no synchronisation.
bool checks_unasked(const PlanData& plan) { return plan.device.kind == DeviceKind::kCpu; }

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
  const Plan plan = plan_for(problem, device, options);
  const PlanData& data = plan.data();
  prepare(plan);
  const Buffers buffers = buffers_of(inputs, outputs);
  if (checks_unasked(data) || options.check_contents) check_contents(data, buffers, stream);
  if (all_empty(outputs)) return;
  const Scratch scratch(data, stream);
  data.backend->run(data, buffers, scratch.memory(), stream);
}

Plan make_plan(const Inputs& inputs, const Outputs& outputs, const Options& options) {
  return plan_for(validate_problem(inputs, outputs, options), inputs.x.device, options);
}

void prepare(const Plan& plan) {
  const PlanData& data = plan.data();
  if (!data.runs) {
    refuse_input("architecture", "none for a plan that runs", data.device_info.architecture,
                 ErrorKind::kUnsupported);
  }
  data.backend->prepare(data);
}

void run(const Plan& plan, const Inputs& inputs, const Outputs& outputs, void* workspace,
         void* stream) {
  const PlanData& data = plan.data();
  require_fits(data.problem, inputs, outputs);
  require_workspace(workspace, data.workspace_bytes);
  const Buffers buffers = buffers_of(inputs, outputs);
  if (checks_unasked(data)) check_contents(data, buffers, stream);
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
