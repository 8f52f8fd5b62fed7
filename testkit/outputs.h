// The operation's outputs, as a table: what is done to each of them loops over it.
#pragma once

#include "chunkscan/ssd.h"

namespace chunkscan::testkit {

enum class Output { kY, kState, kLogDecay };

struct OutputField {
  const char* name;
  Output kind;
  TensorView Outputs::*view;
};
inline constexpr OutputField kOutputs[] = {
    {"y", Output::kY, &Outputs::y},
    {"final_states", Output::kState, &Outputs::final_states},
    {"chunk_states", Output::kState, &Outputs::chunk_states},
    {"log_decay", Output::kLogDecay, &Outputs::log_decay},
};

}  // namespace chunkscan::testkit
