// Runs the built program as a user does.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/scratch.h"

namespace chunkscan {

inline const std::string kLayer = TESTDATA "/layer3_ssd.safetensors";

struct Ran {
  int code = -1;
  std::string out, err;

  nlohmann::json json() const;
};

class Program : public Scratch {
 protected:
  // `arguments` as in a shell. `output`: where stdout goes instead of into Ran.
  Ran chunkscan(const std::string& arguments, const std::string& output = "") const;

  // Expects a refusal: exit code 2, nothing on stdout, and this alone on stderr.
  void expect_refusal(const std::string& arguments, const std::string& sentence) const;

  // Copies the bundled layer's file, with a tensor or a metadata entry changed or left out.
  std::string layer_without(const std::string& tensor) const;
  std::string layer_with_metadata(const std::string& key, const std::string& value) const;
};

}  // namespace chunkscan
