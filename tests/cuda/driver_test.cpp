// What we do with a driver, on one without a GPU (fake_driver.cpp). A process opens its driver
// once, so every test runs in a child.
#include "cuda/driver.h"

#include <dlfcn.h>

#include <thread>

#include "chunkscan/backends.h"
#include "cuda/child.h"
#include "cuda/device.h"
#include "cuda/fixture.h"
#include "cuda/image_file.h"
#include "cuda/jit.h"

namespace chunkscan::cuda {
namespace {

using testing::HasSubstr;

class FakeDriver : public Jit {
 protected:
  static std::string with(const char* name, const char* value,
                          const std::function<std::string()>& work) {
    return in_child([&] {
      setenv(name, value, 1);
      return work();
    });
  }

  // A counter of the fake driver.
  static std::string fake(const char* name) {
    const auto function =
        reinterpret_cast<int (*)()>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
    return std::to_string(function());
  }

  static CUcontext current() {
    CUcontext context = nullptr;
    driver().cuCtxGetCurrent(&context);
    return context;
  }

  static CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }
};

TEST_F(FakeDriver, UnavailableIsASentence) {
  EXPECT_EQ(with("FAKE_CUDA_VERSION", "11080", driver_unavailable),
            "expected a driver for CUDA 12.0 or later, got one for CUDA 11.8");
  EXPECT_EQ(with("FAKE_CUDA_INIT", "100", driver_unavailable),
            "expected a working GPU, got CUDA_ERROR_FAKE (not really) from cuInit");
  EXPECT_EQ(with("FAKE_CUDA_DEVICES", "0", driver_unavailable),
            "expected a GPU, got a driver without one");
  EXPECT_EQ(in_child(driver_unavailable), "");
}

TEST_F(FakeDriver, CheckThrowsASentence) {
  EXPECT_EQ(in_child([] {
              check(CUDA_SUCCESS, "do nothing");
              check(CUDA_ERROR_OUT_OF_MEMORY, "do something");
              return std::string();
            }),
            "[forward] cuda: failed to do something: CUDA_ERROR_FAKE (not really)");
}

TEST_F(FakeDriver, DevicesAreDescribed) {
  EXPECT_EQ(in_child([] {
              std::string text;
              for (const DeviceInfo& device : devices()) {
                text += device.name + " " + device.architecture + " " +
                        std::to_string(device.multiprocessors) + " " +
                        std::to_string(device.shared_per_block_optin) + " " +
                        std::to_string(device.memory_bytes >> 30) + refuses_device(device) + "\n";
              }
              const CudaInfo info = cuda_info();
              return text + info.driver + " " + std::to_string(info.gpus.size());
            }),
            "Fake H200 sm_90a 132 232448 141\n"
            "Fake T4  132 232448 141device: expected compute capability 8.0 or later, got 7.5 "
            "(Fake T4)\n"
            "13.0 2");
}

TEST_F(FakeDriver, GuardMakesAContextCurrent) {
  EXPECT_EQ(in_child([] {
              std::string right;
              {
                ContextGuard guard(1);
                right += current() == context(101) ? '1' : '0';
                {
                  ContextGuard inner(0);
                  right += current() == context(100) ? '1' : '0';
                }
                right += current() == context(101) ? '1' : '0';
              }
              right += current() == nullptr ? '1' : '0';
              // The caller's own context of that device stays.
              driver().cuCtxPushCurrent(context(201));
              ContextGuard guard(1);
              right += current() == context(201) ? '1' : '0';
              return right;
            }),
            "11111");
  EXPECT_THAT(in_child([] {
                ContextGuard guard(7);
                return std::string();
              }),
              HasSubstr("failed to find a device"));
}

// Its kernels come from a pack of nothing in particular, which is all the same to this driver.
class FakeDriverWithCode : public FakeDriver {
 protected:
  void SetUp() override {
    std::vector<Image> images;
    for (int i = 1; i <= 4; ++i) {
      images.push_back({fill_key(i), {}});
      images.back().code.image = {'c', 'o', 'd', 'e'};
      images.back().code.compiler = 13000;
    }
    setenv("CHUNKSCAN_PACK", write_bytes("a.pack", encode(images)).c_str(), 1);
  }
};

TEST_F(FakeDriverWithCode, LoadsOnceForEachContext) {
  EXPECT_EQ(in_child([] {
              std::string right;
              ContextGuard guard(0);
              right += find_loaded(fill_key()) == nullptr ? '1' : '0';
              const Kernel& kernel = load(fill_key());
              right += &load(fill_key()) == &kernel ? '1' : '0';
              right += find_loaded(fill_key()) == &kernel ? '1' : '0';
              right += kernel.registers == 40 && kernel.static_shared_bytes == 1024 &&
                               kernel.max_threads == 128 && kernel.local_bytes == 0
                           ? '1'
                           : '0';
              driver().cuCtxPushCurrent(context(200));
              right += find_loaded(fill_key()) == nullptr ? '1' : '0';
              right += &load(fill_key()) != &kernel ? '1' : '0';
              return right + " " + fake("fake_modules") + " " + fake("fake_dynamic_shared");
            }),
            "111111 2 231424");
}

TEST_F(FakeDriverWithCode, PreparesManyFromManyThreads) {
  EXPECT_EQ(
      in_child([] {
        std::vector<KernelKey> keys;
        for (int i = 1; i <= 4; ++i) keys.push_back(fill_key(i));
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) {
          threads.emplace_back([&] {
            ContextGuard guard(0);
            prepare(keys);
          });
        }
        for (std::thread& thread : threads) thread.join();
        ContextGuard guard(0);
        for (const KernelKey& key : keys) {
          if (find_loaded(key) == nullptr) return std::string("missing");
        }
        return std::to_string(std::stoi(fake("fake_modules")) - std::stoi(fake("fake_unloaded")));
      }),
      "4");
}

TEST_F(FakeDriverWithCode, NeedsACurrentContext) {
  EXPECT_EQ(in_child([] {
              load(fill_key());
              return std::string();
            }),
            "[forward] cuda: expected a current context, got none");
}

TEST_F(FakeDriverWithCode, DriverTooOldForTheCodeIsASentence) {
  without_nvrtc();  // which might know an older CUDA
  EXPECT_EQ(with("FAKE_CUDA_VERSION", "12040",
                 [] {
                   ContextGuard guard(0);
                   load(fill_key());
                   return std::string();
                 }),
            "[forward] cuda: expected a driver for CUDA 13.0 or later, which NVRTC 13.0's kernels "
            "need, got one for CUDA 12.4");
}

}  // namespace
}  // namespace chunkscan::cuda
