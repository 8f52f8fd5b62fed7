// The C interface: exceptions become statuses and sentences.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "c_structs.h"
#include "chunkscan/chunkscan.h"
#include "chunkscan/chunkscan_c.h"
#include "chunkscan/pack.h"
#include "op/sentence.h"

using namespace chunkscan;

struct chunkscan_plan {
  Plan plan;
  std::string config, text;
};

namespace {

// A fixed buffer: telling a failure cannot fail itself.
thread_local char last_error[1024] = "";

chunkscan_status failed(chunkscan_status status, const char* sentence) {
  const std::size_t length = std::min(std::strlen(sentence), sizeof last_error - 1);
  std::memcpy(last_error, sentence, length);
  last_error[length] = '\0';
  return status;
}

chunkscan_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput: return CHUNKSCAN_INPUT;
    case ErrorKind::kUnsupported: return CHUNKSCAN_UNSUPPORTED;
    case ErrorKind::kRuntime: break;
  }
  return CHUNKSCAN_RUNTIME;
}

template <class Work>
chunkscan_status guarded(const Work& work) noexcept {
  try {
    work();
    return CHUNKSCAN_OK;
  } catch (const Error& error) {
    return failed(status_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return failed(CHUNKSCAN_RUNTIME, "[forward] memory: expected enough for this call, got none");
  } catch (const std::exception& error) {
    return failed(CHUNKSCAN_RUNTIME, error.what());
  }
}

const Plan& plan_in(const chunkscan_plan* plan) {
  if (plan == nullptr) refuse_input("plan", "a plan", "NULL");
  return plan->plan;
}

// What can be used does not change while a process lives. Null: no such index.
const BackendInfo* backend_at(std::int32_t index) noexcept {
  try {
    static const std::vector<BackendInfo> all = backends();
    return index >= 0 && index < static_cast<int>(all.size()) ? &all[index] : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

void chunkscan_options_init(chunkscan_options* options, size_t size) {
  // A caller of another version gets as much as its struct holds, and 0 beyond ours.
  chunkscan_options defaults = default_options();
  defaults.size = size;
  std::memset(static_cast<void*>(options), 0, size);
  std::memcpy(static_cast<void*>(options), &defaults, std::min(size, sizeof defaults));
}

chunkscan_status chunkscan_forward(const chunkscan_inputs* inputs, const chunkscan_outputs* outputs,
                                   const chunkscan_options* options, void* stream) {
  return guarded(
      [&] { forward(inputs_of(inputs), outputs_of(outputs), options_of(options), stream); });
}

chunkscan_status chunkscan_plan_make(const chunkscan_inputs* inputs,
                                     const chunkscan_outputs* outputs,
                                     const chunkscan_options* options, chunkscan_plan** plan) {
  return guarded([&] {
    if (plan == nullptr) refuse_input("plan", "a place for the plan", "NULL");
    *plan = nullptr;
    const Plan made = make_plan(inputs_of(inputs), outputs_of(outputs), options_of(options));
    *plan = new chunkscan_plan{made, made.config(), made.to_string()};
  });
}

void chunkscan_plan_destroy(chunkscan_plan* plan) { delete plan; }

const char* chunkscan_plan_backend(const chunkscan_plan* plan) { return plan->plan.backend(); }
const char* chunkscan_plan_config(const chunkscan_plan* plan) { return plan->config.c_str(); }
const char* chunkscan_plan_text(const chunkscan_plan* plan) { return plan->text.c_str(); }
size_t chunkscan_plan_workspace_bytes(const chunkscan_plan* plan) {
  return plan->plan.workspace_bytes();
}
int32_t chunkscan_plan_threads(const chunkscan_plan* plan) { return plan->plan.threads(); }

chunkscan_status chunkscan_plan_prepare(const chunkscan_plan* plan) {
  return guarded([&] { prepare(plan_in(plan)); });
}

chunkscan_status chunkscan_plan_run(const chunkscan_plan* plan, const chunkscan_inputs* inputs,
                                    const chunkscan_outputs* outputs, void* workspace,
                                    void* stream) {
  return guarded(
      [&] { run(plan_in(plan), inputs_of(inputs), outputs_of(outputs), workspace, stream); });
}

chunkscan_status chunkscan_load_pack(const char* path) {
  return guarded([&] {
    if (path == nullptr) refuse_input("pack", "a path", "NULL");
    load_pack(path);
  });
}

chunkscan_status chunkscan_write_pack(const chunkscan_plan* const* plans, size_t count,
                                      const char* path, size_t* kernels) {
  return guarded([&] {
    if (path == nullptr) refuse_input("pack", "a path", "NULL");
    if (plans == nullptr && count > 0) refuse_input("plans", "plans", "NULL");
    std::vector<Plan> all;
    for (size_t i = 0; i < count; ++i) all.push_back(plan_in(plans[i]));
    const std::size_t written = write_pack(all, path);
    if (kernels != nullptr) *kernels = written;
  });
}

const char* chunkscan_last_error(void) { return last_error; }

const char* chunkscan_version(void) { return version(); }

int32_t chunkscan_backend_count(void) {
  int32_t count = 0;
  while (backend_at(count) != nullptr) ++count;
  return count;
}

const char* chunkscan_backend_name(int32_t index) {
  const BackendInfo* backend = backend_at(index);
  return backend == nullptr ? nullptr : backend->name.c_str();
}

const char* chunkscan_backend_reason(int32_t index) {
  const BackendInfo* backend = backend_at(index);
  return backend == nullptr ? nullptr : backend->reason.c_str();
}
