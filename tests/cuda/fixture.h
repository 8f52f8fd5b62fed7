// Tests with a directory, a cache in it, and nothing remembered from the test before.
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

#include "chunkscan/error.h"
#include "cuda/code.h"
#include "cuda/nvrtc.h"
#include "cuda/pack.h"
#include "io/scratch.h"

namespace chunkscan::cuda {

class Jit : public Scratch {
 protected:
  Jit() {
    setenv("CHUNKSCAN_CACHE", path("cache").c_str(), 1);
    unsetenv("CHUNKSCAN_PACK");
    forget();
  }
  ~Jit() override {
    unsetenv("CHUNKSCAN_CACHE");
    unsetenv("CHUNKSCAN_PACK");
    set_nvrtc_path("");
    forget();
  }

  static void forget() {
    forget_packs();
    forget_code();
  }

  void without_nvrtc() const { set_nvrtc_path(path("no such file")); }
};

inline KernelKey fill_key(int per_thread = 1, const std::string& architecture = "sm_90a") {
  return {"fill.cuh",
          "chunkscan::fill<" + std::to_string(per_thread) + ">",
          "chunkscan::FillParams",
          128,
          1,
          architecture};
}

inline std::string text_of(const Compiled& code) { return {code.image.begin(), code.image.end()}; }

// The sentence of the Error that `work` throws.
template <class Work>
std::string sentence_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace chunkscan::cuda
