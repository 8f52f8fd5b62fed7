#include "op/problem.h"

namespace chunkscan {

std::string to_string(const Problem& problem) {
  std::string text;
  const auto size = [&](const char* letter, std::int64_t value) {
    if (!text.empty()) text += " ";
    text += letter + std::to_string(value);
  };
  const auto tensor = [&](const char* name, std::optional<DType> dtype) {
    if (dtype) text += std::string(" ") + name + ":" + name_of(*dtype);
  };
  size("b", problem.b);
  size("l", problem.l);
  size("h", problem.h);
  size("p", problem.p);
  size("n", problem.n);
  size("g", problem.g);
  if (problem.packing == Packing::kCuSeqlens) size("s", problem.sequences);
  tensor("x", problem.x);
  tensor("dt", problem.dt);
  tensor("B", problem.B);
  tensor("C", problem.C);
  tensor("D", problem.D);
  tensor("z", problem.z);
  tensor("dt_bias", problem.dt_bias);
  tensor("initial_states", problem.initial_states);
  tensor("final_states", problem.final_states);
  tensor("chunk_states", problem.chunk_states);
  tensor("log_decay", problem.log_decay);
  if (problem.packing == Packing::kSeqIdx) text += " seq_idx";
  if (problem.packing == Packing::kCuSeqlens) text += " cu_seqlens";
  if (problem.dt_softplus) text += " softplus";
  if (problem.batch_invariant) text += " batch_invariant";
  return text;
}

}  // namespace chunkscan
