// How long work on a GPU takes.
#pragma once

#include <functional>
#include <vector>

#include "testkit/device_memory.h"

namespace chunkscan::testkit {

// Microseconds from the end of one call to the end of the next, by events on the stream. All calls
// are enqueued before the first is waited for: where the host is quicker than the device, its own
// time does not show.
std::vector<double> event_times_us(const Stream& stream, int calls,
                                   const std::function<void()>& enqueue);

// What `enqueue` puts on the stream, as a CUDA graph. Throws Error(kRuntime) where it waits for the
// device or allocates memory, which a capture forbids.
class Graph {
 public:
  Graph(const Stream& stream, const std::function<void()>& enqueue);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch() const;  // on the stream, waits for nothing

 private:
  const Stream& stream_;
  void* exec_ = nullptr;  // a CUgraphExec
};

// Copying device memory far larger than the caches; 1e9 bytes a second, read and written bytes
// together. The best of several rounds.
double device_copy_gb_per_s(Device device = kGpu);

}  // namespace chunkscan::testkit
