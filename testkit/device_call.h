// A call of the operation on a GPU, for tensors that are in host memory.
#pragma once

#include <cstddef>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "testkit/device_memory.h"

namespace chunkscan::testkit {

// Copies of a call's tensors in device memory. What lies side by side or on top of each other on
// the host does so there: views keep their strides, the gaps between their elements, what they
// share with other views, and their addresses' remainder by 16. Around them is nothing but NaN.
class DeviceCall {
 public:
  // Keeps the views, not the memory: that has to live as long. Uploads.
  DeviceCall(const Inputs& inputs, const Outputs& outputs, Device device = kGpu);

  const Inputs& inputs() const { return inputs_; }
  const Outputs& outputs() const { return outputs_; }
  const Stream& stream() const { return stream_; }

  // Inputs and outputs, whatever these hold.
  void upload() const;
  // The outputs, and what lies between their elements. Waits for the stream.
  void download() const;
  // Whether inputs that share no memory with outputs, and what is around all tensors, are on the
  // device as upload() left them.
  bool untouched_elsewhere() const;

 private:
  // Host bytes that some views cover together.
  struct Region {
    std::byte* host = nullptr;
    std::size_t bytes = 0;
    std::size_t offset = 0;  // of its copy in memory_
    bool has_output = false;
  };
  static std::vector<Region> regions_of(const Inputs& inputs, const Outputs& outputs);
  TensorView on_device(const TensorView& view) const;

  Stream stream_;
  std::vector<Region> regions_;  // by address on the host, which is the order of the copies too
  DeviceMemory memory_;
  Inputs inputs_;
  Outputs outputs_;
};

// A plan for such a call with its workspace, ready to be called again and again.
class PreparedDeviceCall {
 public:
  PreparedDeviceCall(const DeviceCall& call, const Options& options);

  const Plan& plan() const { return plan_; }
  const DeviceMemory& workspace() const { return workspace_; }
  // Waits for nothing.
  void run() const;

 private:
  const DeviceCall& call_;
  Plan plan_;
  DeviceMemory workspace_;
};

// forward() for tensors in host memory. Where `device` is a GPU, it works on copies there; the
// outputs come back.
void forward_on(Device device, const Inputs& inputs, const Outputs& outputs,
                const Options& options);

// The same views, said to be on `device`: for plans, which read no data.
Inputs as_if_on(Device device, Inputs inputs);

}  // namespace chunkscan::testkit
