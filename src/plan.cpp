#include "plan.h"

#include "chunkscan/backends.h"
#include "op/sentence.h"

namespace chunkscan {

namespace {

const Backend& choose_backend(const Problem& problem, DeviceKind device, const Options& options) {
  if (!options.backend.empty()) {
    const Backend& backend = backend_named(options.backend);
    if (std::string why = backend.unavailable(); !why.empty()) {
      throw Error(ErrorKind::kUnsupported, "[forward] backend " + options.backend + ": " + why);
    }
    if (backend.device != device) {
      refuse_input("backend",
                   device == DeviceKind::kCpu ? "one for CPU tensors" : "one for CUDA tensors",
                   options.backend, ErrorKind::kUnsupported);
    }
    if (std::string why = backend.refuses(problem); !why.empty()) {
      throw Error(ErrorKind::kUnsupported, "[forward] " + why);
    }
    return backend;
  }
  std::string reason;
  for (const Backend& backend : all_backends()) {
    if (backend.device != device || !backend.unavailable().empty()) continue;
    std::string why = backend.refuses(problem);
    if (why.empty()) return backend;
    if (reason.empty()) reason = why;
  }
  if (reason.empty()) reason = "device: expected cpu, got cuda (no CUDA backend is available here)";
  throw Error(ErrorKind::kUnsupported, "[forward] " + reason);
}

}  // namespace

Plan plan_for(const Problem& problem, DeviceKind device, const Options& options) {
  auto data = std::make_shared<PlanData>();
  data->problem = problem;
  data->backend = &choose_backend(problem, device, options);
  data->threads = options.threads > 0 ? options.threads : default_threads();
  data->config = data->backend->default_config(problem);
  if (!options.config.empty()) {
    data->config = parse_config(options.config, data->config);
    if (std::string why = data->backend->refuses_config(problem, data->config); !why.empty()) {
      throw Error(ErrorKind::kInput, "[forward] " + why);
    }
  }
  data->workspace_bytes = data->backend->workspace_bytes(problem, data->config, data->threads);
  return Plan(std::move(data));
}

const char* Plan::backend() const { return data_->backend->name; }
std::string Plan::config() const { return chunkscan::to_string(data_->config); }
std::size_t Plan::workspace_bytes() const { return data_->workspace_bytes; }
int Plan::threads() const { return data_->threads; }
std::string Plan::to_string() const {
  return chunkscan::to_string(data_->problem) + " on " + backend() + " [" + config() + "], " +
         std::to_string(threads()) + " threads, workspace " + std::to_string(workspace_bytes()) +
         " bytes";
}

}  // namespace chunkscan
