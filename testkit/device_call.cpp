#include "testkit/device_call.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "testkit/outputs.h"

namespace chunkscan::testkit {

namespace {

constexpr TensorView Inputs::*kInputs[] = {
    &Inputs::x,       &Inputs::dt,        &Inputs::A,
    &Inputs::B,       &Inputs::C,         &Inputs::D,
    &Inputs::z,       &Inputs::dt_bias,   &Inputs::initial_states,
    &Inputs::seq_idx, &Inputs::cu_seqlens};

constexpr std::size_t kAround = 256;  // bytes of NaN before and after a region
constexpr std::size_t kKept = 16;     // what an address keeps its remainder by

struct Span {
  std::byte *begin, *end;
};

// From the first to the last byte of any element.
Span span_of(const TensorView& view) {
  std::int64_t first = 0, last = 0;
  for (int i = 0; i < view.rank; ++i) {
    const std::int64_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? first : last) += reach;
  }
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  auto* data = static_cast<std::byte*>(view.data);
  return {data + first * bytes, data + (last + 1) * bytes};
}

bool all_nan_bytes(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte byte) { return byte == std::byte{0xff}; });
}

std::size_t remainder(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kKept;
}

}  // namespace

std::vector<DeviceCall::Region> DeviceCall::regions_of(const Inputs& inputs,
                                                       const Outputs& outputs) {
  std::vector<Region> all;
  const auto add = [&all](const TensorView& view, bool output) {
    if (!view.present() || view.elements() == 0) return;
    const Span span = span_of(view);
    all.push_back({span.begin, static_cast<std::size_t>(span.end - span.begin), 0, output});
  };
  for (auto member : kInputs) add(inputs.*member, false);
  for (const OutputField& field : kOutputs) add(outputs.*field.view, true);
  std::sort(all.begin(), all.end(),
            [](const Region& a, const Region& b) { return a.host < b.host; });
  std::vector<Region> regions;
  for (const Region& next : all) {
    if (regions.empty() || next.host >= regions.back().host + regions.back().bytes) {
      regions.push_back(next);
      continue;
    }
    Region& last = regions.back();
    const auto end = static_cast<std::size_t>(next.host + next.bytes - last.host);
    last.bytes = std::max(last.bytes, end);
    last.has_output |= next.has_output;
  }
  std::size_t at = 0;
  for (Region& region : regions) {
    region.offset = at + kAround + remainder(region.host);
    at = (region.offset + region.bytes + kAround - 1) / kAround * kAround;
  }
  return regions;
}

DeviceCall::DeviceCall(const Inputs& inputs, const Outputs& outputs, Device device)
    : stream_(device),
      regions_(regions_of(inputs, outputs)),
      memory_(regions_.empty() ? kAround : regions_.back().offset + regions_.back().bytes + kAround,
              device),
      inputs_(inputs),
      outputs_(outputs) {
  for (auto member : kInputs) inputs_.*member = on_device(inputs.*member);
  for (const OutputField& field : kOutputs) {
    outputs_.*field.view = on_device(outputs.*field.view);
  }
  upload();
}

TensorView DeviceCall::on_device(const TensorView& view) const {
  TensorView copy = view;
  copy.device = stream_.device();
  if (!view.present() || view.elements() == 0) return copy;  // its address does not matter
  for (const Region& region : regions_) {
    const Span span = span_of(view);
    if (span.begin < region.host || span.begin >= region.host + region.bytes) continue;
    copy.data = memory_.data() + region.offset + (static_cast<std::byte*>(view.data) - region.host);
  }
  return copy;
}

void DeviceCall::upload() const {
  for (const Region& region : regions_) {
    stream_.copy_to_device(memory_.data() + region.offset, region.host, region.bytes);
  }
}

void DeviceCall::download() const {
  for (const Region& region : regions_) {
    if (!region.has_output) continue;
    stream_.copy_to_host(region.host, memory_.data() + region.offset, region.bytes);
  }
}

bool DeviceCall::untouched_elsewhere() const {
  std::vector<std::byte> copy(memory_.size());
  stream_.copy_to_host(copy.data(), memory_.data(), copy.size());
  const std::byte* around = copy.data();
  for (const Region& region : regions_) {
    const std::byte* begin = copy.data() + region.offset;
    if (!all_nan_bytes(around, begin)) return false;
    if (!region.has_output && std::memcmp(begin, region.host, region.bytes) != 0) return false;
    around = begin + region.bytes;
  }
  return all_nan_bytes(around, copy.data() + copy.size());
}

PreparedDeviceCall::PreparedDeviceCall(const DeviceCall& call, const Options& options)
    : call_(call),
      plan_(make_plan(call.inputs(), call.outputs(), options)),
      workspace_(plan_.workspace_bytes(), call.stream().device()) {
  prepare(plan_);
}

void PreparedDeviceCall::run() const {
  chunkscan::run(plan_, call_.inputs(), call_.outputs(), workspace_.data(), call_.stream().get());
}

void forward_on(Device device, const Inputs& inputs, const Outputs& outputs,
                const Options& options) {
  if (device.kind == DeviceKind::kCpu) return forward(inputs, outputs, options);
  const DeviceCall call(inputs, outputs, device);
  forward(call.inputs(), call.outputs(), options, call.stream().get());
  call.download();
}

Inputs as_if_on(Device device, Inputs inputs) {
  for (auto member : kInputs) (inputs.*member).device = device;
  return inputs;
}

}  // namespace chunkscan::testkit
