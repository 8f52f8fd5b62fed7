#include "cuda/jit.h"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "chunkscan/error.h"
#include "cuda/driver.h"

namespace chunkscan::cuda {

namespace {

using ContextId = unsigned long long;  // unlike an address, never used again
using Kernels = std::unordered_map<KernelKey, std::unique_ptr<const Kernel>, KernelKeyHash>;

struct Loaded {
  std::shared_mutex mutex;
  std::unordered_map<ContextId, Kernels> contexts;
};

Loaded& loaded() {
  static Loaded& the_loaded = *new Loaded;  // never destroyed: threads may outlive main()
  return the_loaded;
}

ContextId current_context() {
  CUcontext context = nullptr;
  check(driver().cuCtxGetCurrent(&context), "ask for the current context");
  if (context == nullptr) {
    throw Error(ErrorKind::kRuntime, "[forward] cuda: expected a current context, got none");
  }
  ContextId id = 0;
  check(driver().cuCtxGetId(context, &id), "ask a context for its number");
  return id;
}

int attribute(CUfunction function, CUfunction_attribute which) {
  int value = 0;
  check(driver().cuFuncGetAttribute(&value, which, function), "ask a kernel for an attribute");
  return value;
}

CUmodule load_module(const Compiled& code) {
  if (std::string why = refuses_code(code, driver_version()); !why.empty()) {
    throw Error(ErrorKind::kRuntime, "[forward] cuda: " + why);
  }
  CUmodule module = nullptr;
  check(driver().cuModuleLoadData(&module, code.image.data()), "load a kernel");
  return module;
}

// The largest dynamic shared memory that a block may ask for on the current device.
void allow_shared(const Kernel& kernel) {
  CUdevice device = 0;
  int most = 0;
  check(driver().cuCtxGetDevice(&device), "ask for the current device");
  check(driver().cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                      device),
        "ask a device for an attribute");
  check(
      driver().cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  most - kernel.static_shared_bytes),
      "allow a kernel its shared memory");
}

Kernel kernel_in(CUmodule module) {
  Kernel kernel;
  check(driver().cuModuleGetFunction(&kernel.function, module, "chunkscan_kernel"),
        "find a kernel in its code");
  kernel.registers = attribute(kernel.function, CU_FUNC_ATTRIBUTE_NUM_REGS);
  kernel.local_bytes = attribute(kernel.function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  kernel.static_shared_bytes = attribute(kernel.function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  kernel.max_threads = attribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  allow_shared(kernel);
  return kernel;
}

const Kernel* find_in(ContextId context, const KernelKey& key) {
  Loaded& l = loaded();
  std::shared_lock lock(l.mutex);
  const auto kernels = l.contexts.find(context);
  if (kernels == l.contexts.end()) return nullptr;
  const auto kernel = kernels->second.find(key);
  return kernel == kernels->second.end() ? nullptr : kernel->second.get();
}

}  // namespace

const Kernel* find_loaded(const KernelKey& key) { return find_in(current_context(), key); }

const Kernel& load(const KernelKey& key) {
  const ContextId context = current_context();
  if (const Kernel* kernel = find_in(context, key)) return *kernel;
  const CUmodule module = load_module(code_of(key));
  auto kernel = std::make_unique<const Kernel>(kernel_in(module));
  Loaded& l = loaded();
  std::scoped_lock lock(l.mutex);
  const auto [place, first] = l.contexts[context].try_emplace(key, std::move(kernel));
  if (!first) driver().cuModuleUnload(module);  // another thread was faster
  return *place->second;
}

void prepare(std::span<const KernelKey> keys) {
  std::vector<KernelKey> missing;
  for (const KernelKey& key : keys) {
    if (find_loaded(key) == nullptr) missing.push_back(key);
  }
  codes_of(missing);
  for (const KernelKey& key : missing) load(key);
}

}  // namespace chunkscan::cuda
