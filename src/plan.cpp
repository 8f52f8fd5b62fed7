#include "plan.h"

#include <algorithm>

#include "chunkscan/backends.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "op/sentence.h"

namespace chunkscan {

namespace {

// The device that a call is planned for: a named architecture, or the one the tensors are on.
DeviceInfo info_of(Device device, const Options& options) {
  if (!options.architecture.empty()) return cuda::device_named(options.architecture);
  if (device.kind == DeviceKind::kCpu) return {};
  if (std::string why = cuda::driver_unavailable(); !why.empty()) {
    throw Error(ErrorKind::kUnsupported, "[forward] device: expected cpu, got cuda: " + why);
  }
  const auto devices = cuda::devices();
  const auto count = static_cast<int>(devices.size());
  if (device.index < 0 || device.index >= count) {
    refuse_input("device", "cuda:0 to cuda:" + std::to_string(count - 1),
                 "cuda:" + std::to_string(device.index));
  }
  return devices[static_cast<std::size_t>(device.index)];
}

bool named(const Backend& backend, std::string_view wanted) {
  return wanted == backend.name ||
         (wanted == "cuda" && std::string_view(backend.name).starts_with("cuda/"));
}

// The best row that is wanted, lives on the device and can. Planned for a named architecture, a row
// need not be usable here.
const Backend& choose_backend(const PlanData& plan, const Options& options) {
  const bool elsewhere = !options.architecture.empty();
  if (!options.backend.empty() && options.backend != "cuda") backend_named(options.backend);
  std::string reason;
  for (const Backend& backend : all_backends()) {
    if (!options.backend.empty() && !named(backend, options.backend)) continue;
    if (options.backend.empty() && backend.device != plan.device.kind) continue;
    std::string why = elsewhere ? "" : backend.unavailable();
    if (!why.empty()) {
      const std::string name = options.backend.empty() ? backend.name : options.backend;
      why = "backend " + name + ": " + why;
    } else if (backend.device != plan.device.kind) {
      why = std::string("backend: expected one for ") +
            (plan.device.kind == DeviceKind::kCpu ? "CPU" : "CUDA") + " tensors, got " +
            backend.name;
    } else {
      why = backend.refuses(plan.problem, plan.device_info);
    }
    if (why.empty()) return backend;
    reason = why;  // of the last one, which is the one that takes the most
  }
  throw Error(ErrorKind::kUnsupported, "[forward] " + reason);
}

}  // namespace

Plan plan_for(const Problem& problem, Device device, const Options& options) {
  auto data = std::make_shared<PlanData>();
  data->problem = problem;
  data->device = device;
  if (!options.architecture.empty()) {
    data->device.kind = DeviceKind::kCuda;
    data->runs = false;
  }
  data->device_info = info_of(device, options);
  data->backend = &choose_backend(*data, options);
  const Backend& backend = *data->backend;
  if (data->device.kind == DeviceKind::kCpu) {
    data->threads = options.threads > 0 ? options.threads : default_threads();
  }
  data->config = backend.default_config(problem, data->device_info);
  if (!options.config.empty()) {
    data->config = parse_config(options.config, data->config);
    std::string why = backend.refuses_config(problem, data->device_info, data->config);
    if (!why.empty()) throw Error(ErrorKind::kInput, "[forward] " + why);
  }
  backend.complete(*data);
  return Plan(std::move(data));
}

const char* Plan::backend() const { return data_->backend->name; }
std::string Plan::config() const { return chunkscan::to_string(data_->config); }
std::size_t Plan::workspace_bytes() const { return data_->workspace_bytes; }
int Plan::threads() const { return data_->threads; }
std::vector<std::string> Plan::candidates() const {
  std::vector<std::string> configs = {config()};
  for (const Config& candidate : data_->backend->candidates(data_->problem, data_->device_info)) {
    std::string text = chunkscan::to_string(candidate);
    if (std::find(configs.begin(), configs.end(), text) == configs.end()) {
      configs.push_back(std::move(text));
    }
  }
  return configs;
}
std::string Plan::to_string() const {
  const std::string who =
      data_->device.kind == DeviceKind::kCuda
          ? data_->device_info.name + " (" + data_->device_info.architecture + ")"
          : std::to_string(threads()) + " threads";
  return chunkscan::to_string(data_->problem) + " on " + backend() + " [" + config() + "], " + who +
         ", workspace " + std::to_string(workspace_bytes()) + " bytes";
}

}  // namespace chunkscan
