#include "testkit/device_time.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <exception>

#include "cuda/device.h"
#include "cuda/driver.h"

namespace chunkscan::testkit {

namespace {

using cuda::check;
using cuda::ContextGuard;
using cuda::driver;

cuda::CUstream handle(const Stream& stream) { return static_cast<cuda::CUstream>(stream.get()); }

// Lives within one ContextGuard.
class Event {
 public:
  Event() { check(driver().cuEventCreate(&event_, cuda::CU_EVENT_DEFAULT), "create an event"); }
  ~Event() { driver().cuEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream) {
    check(driver().cuEventRecord(event_, handle(stream)), "record an event");
  }
  double us_since(const Event& start) const {
    check(driver().cuEventSynchronize(event_), "wait for an event");
    float milliseconds = 0.0f;
    check(driver().cuEventElapsedTime(&milliseconds, start.event_, event_), "read an event");
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  cuda::CUevent event_ = nullptr;
};

// The library itself has no use for it.
using CopyOnDevice = cuda::CUresult (*)(cuda::CUdeviceptr to, cuda::CUdeviceptr from,
                                        std::size_t bytes, cuda::CUstream stream);
CopyOnDevice copy_on_device() {
  driver();  // opened, or the sentence why not
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<CopyOnDevice>(dlsym(library, "cuMemcpyDtoDAsync_v2"));
}

}  // namespace

std::vector<double> event_times_us(const Stream& stream, int calls,
                                   const std::function<void()>& enqueue) {
  const ContextGuard guard(stream.device().index);
  std::vector<Event> events(static_cast<std::size_t>(calls) + 1);
  events[0].record(stream);
  for (std::size_t i = 1; i < events.size(); ++i) {
    enqueue();
    events[i].record(stream);
  }
  std::vector<double> times;
  for (std::size_t i = 1; i < events.size(); ++i)
    times.push_back(events[i].us_since(events[i - 1]));
  return times;
}

Graph::Graph(const Stream& stream, const std::function<void()>& enqueue) : stream_(stream) {
  const ContextGuard guard(stream.device().index);
  check(driver().cuStreamBeginCapture(handle(stream), cuda::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "begin a capture");
  cuda::CUgraph graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    driver().cuStreamEndCapture(handle(stream), &graph);  // the stream is of use again
    if (graph != nullptr) driver().cuGraphDestroy(graph);
    throw;
  }
  check(driver().cuStreamEndCapture(handle(stream), &graph), "capture a graph");
  cuda::CUgraphExec exec = nullptr;
  const cuda::CUresult made = driver().cuGraphInstantiateWithFlags(&exec, graph, 0);
  driver().cuGraphDestroy(graph);
  check(made, "instantiate a graph");
  exec_ = exec;
}

Graph::~Graph() {
  try {
    const ContextGuard guard(stream_.device().index);
    driver().cuGraphExecDestroy(static_cast<cuda::CUgraphExec>(exec_));
  } catch (const std::exception&) {  // a fault of the device: has been reported
  }
}

void Graph::launch() const {
  const ContextGuard guard(stream_.device().index);
  check(driver().cuGraphLaunch(static_cast<cuda::CUgraphExec>(exec_), handle(stream_)),
        "launch a graph");
}

double device_copy_gb_per_s(Device device) {
  constexpr std::size_t kBytes = std::size_t{1} << 29;
  constexpr int kRounds = 10;
  const Stream stream(device);
  const DeviceMemory from(kBytes, device), to(kBytes, device);
  const CopyOnDevice copy = copy_on_device();
  const auto number = [](const std::byte* pointer) {
    return reinterpret_cast<cuda::CUdeviceptr>(pointer);
  };
  const std::vector<double> times = event_times_us(stream, kRounds, [&] {
    check(copy(number(to.data()), number(from.data()), kBytes, handle(stream)), "copy memory");
  });
  return 2.0 * kBytes / *std::min_element(times.begin(), times.end()) * 1e-3;
}

}  // namespace chunkscan::testkit
