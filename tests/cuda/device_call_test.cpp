// Copies of a call's tensors in device memory, on a driver whose memory is the host's
// (fake_driver.cpp): there the CPU can make the call.
#include "testkit/device_call.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cuda/child.h"
#include "testkit/device_time.h"
#include "testkit/generate.h"

namespace chunkscan::testkit {
namespace {

using cuda::in_child;

char yes(bool right) { return right ? '1' : '0'; }

// A counter of the fake driver.
int fake(const char* name) {
  return reinterpret_cast<int (*)()>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name))();
}

// The call's copies, as the CPU may take them.
Outputs as_if_on_cpu(Outputs outputs) {
  for (const OutputField& field : kOutputs) (outputs.*field.view).device = {};
  return outputs;
}

void run_on_copies(const DeviceCall& call, const Options& options) {
  forward(as_if_on({}, call.inputs()), as_if_on_cpu(call.outputs()), options);
}

CaseSpec spec_of(Layout layout, bool in_place) {
  CaseSpec spec;
  spec.b = 2;
  spec.l = 21;
  spec.h = 3;
  spec.p = 5;
  spec.n = 7;
  spec.dtype = DType::kBF16;
  spec.z = true;
  spec.initial_states = spec.chunk_states = DType::kF32;
  spec.state_every = 8;
  spec.in_place = in_place;
  if (!in_place) spec.final_states = DType::kF16;
  spec.log_decay = true;
  spec.layout = layout;
  return spec;
}

std::uintptr_t remainder(const TensorView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16;
}

TEST(DeviceCall, GivesWhatACallOnTheHostGives) {
  for (int layout = 0; layout <= static_cast<int>(Layout::kTokensBC); ++layout) {
    for (bool in_place : {false, true}) {
      EXPECT_EQ(in_child([&] {
                  Case want(spec_of(Layout(layout), in_place));
                  Case got(spec_of(Layout(layout), in_place));
                  const auto before = got.digest_outside_outputs();
                  forward(want.inputs, want.outputs, want.options);
                  std::string right;
                  {
                    const DeviceCall call(got.inputs, got.outputs);
                    right += yes(call.inputs().x.device == kGpu);
                    right += yes(remainder(call.inputs().x) == remainder(got.inputs.x));
                    right += yes(remainder(call.outputs().y) == remainder(got.outputs.y));
                    right += yes(call.untouched_elsewhere());
                    run_on_copies(call, got.options);
                    right += yes(call.untouched_elsewhere());
                    call.download();
                    right += yes(fake("fake_allocated") > 0);
                  }
                  right += yes(fake("fake_allocated") == 0);
                  for (std::size_t i = 0; i < std::size(kOutputs); ++i) {
                    right += yes(same_bits(views_of(got.outputs)[i], views_of(want.outputs)[i]));
                  }
                  right += yes(got.digest_outside_outputs() == before);
                  return right;
                }),
                "111111111111")
          << layout << " " << in_place;
    }
  }
}

TEST(DeviceCall, NoticesWritesThatBelongNowhere) {
  EXPECT_EQ(in_child([] {
              const Case c(spec_of(Layout::kContiguous, false));
              const DeviceCall call(c.inputs, c.outputs);
              std::string right;
              const auto spoil = [&](const void* at) {
                auto* byte = static_cast<unsigned char*>(const_cast<void*>(at));
                *byte ^= 1;
                right += yes(!call.untouched_elsewhere());
                *byte ^= 1;
                right += yes(call.untouched_elsewhere());
              };
              const TensorView& y = call.outputs().y;
              const auto* end = static_cast<std::byte*>(y.data) + y.elements() * 2;
              spoil(call.inputs().x.data);
              spoil(static_cast<std::byte*>(y.data) - 1);
              spoil(end);
              *static_cast<std::byte*>(y.data) ^= std::byte{1};
              right += yes(call.untouched_elsewhere());
              return right;
            }),
            "1111111");
}

TEST(DeviceCall, UploadsAgainAndTakesEmptyTensors) {
  EXPECT_EQ(in_child([] {
              CaseSpec spec = spec_of(Layout::kContiguous, false);
              spec.l = 0;
              const Case empty(spec);
              const DeviceCall nothing(empty.inputs, empty.outputs);
              nothing.download();
              Case c(spec_of(Layout::kFused, false));
              const DeviceCall call(c.inputs, c.outputs);
              set(c.inputs.x, {1, 2, 0, 3}, 8.0);
              call.upload();
              return std::string{yes(get(call.inputs().x, {1, 2, 0, 3}) == 8.0),
                                 yes(nothing.untouched_elsewhere())};
            }),
            "11");
}

TEST(DeviceTime, EventsAreReadInPairs) {
  EXPECT_EQ(in_child([] {
              const Stream stream;
              int calls = 0;
              const auto times = event_times_us(stream, 3, [&calls] { ++calls; });
              return std::string{yes(calls == 3),
                                 yes(times == std::vector<double>{1000.0, 1000.0, 1000.0}),
                                 yes(device_copy_gb_per_s() > 0.0)};
            }),
            "111");
}

TEST(DeviceTime, AGraphIsCapturedOnceAndLaunchedOften) {
  EXPECT_EQ(in_child([] {
              std::string right;
              {
                const Stream stream;
                int calls = 0;
                const Graph graph(stream, [&calls] { ++calls; });
                for (int i = 0; i < 3; ++i) graph.launch();
                right += yes(calls == 1);
                right += yes(fake("fake_launched") == 3);
                try {
                  const Graph waits(stream, [&stream] { stream.synchronize(); });
                } catch (const Error&) {
                  right += '1';
                }
                stream.synchronize();  // the capture is over
              }
              return right + yes(fake("fake_allocated") == 0);
            }),
            "1111");
}

TEST(DeviceTime, BackendsHaveADevice) {
  EXPECT_EQ(device_of_backend("cuda"), kGpu);
  EXPECT_EQ(device_of_backend("cuda/sm90"), kGpu);
  EXPECT_EQ(device_of_backend("cpu"), Device{});
  EXPECT_EQ(device_of_backend(""), Device{});
}

}  // namespace
}  // namespace chunkscan::testkit
