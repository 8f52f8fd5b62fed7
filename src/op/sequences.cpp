#include "op/sequences.h"

namespace chunkscan {

std::int64_t sequence_offset(const Problem& problem, const Buffers& buffers, std::int64_t i) {
  const std::byte* address = buffers.cu_seqlens.at(i);
  return problem.cu_seqlens_64 ? *reinterpret_cast<const std::int64_t*>(address)
                               : *reinterpret_cast<const std::int32_t*>(address);
}

namespace {

std::int32_t run_id(const Buffers& buffers, std::int64_t batch, std::int64_t t) {
  return *reinterpret_cast<const std::int32_t*>(buffers.seq_idx.at(batch, t));
}

}  // namespace

void fill_sequences(const Problem& problem, const Buffers& buffers, Sequence* table) {
  if (problem.packing != Packing::kCuSeqlens) {
    for (std::int64_t i = 0; i < problem.b; ++i) table[i] = {i, 0, problem.l, i, 0};
    return;
  }
  std::int64_t begin = 0;
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < problem.sequences; ++i) {
    const std::int64_t end = std::clamp(sequence_offset(problem, buffers, i + 1), begin, problem.l);
    table[i] = {0, begin, end, i, row};
    if (problem.state_every > 0) row += (end - begin) / problem.state_every;
    begin = end;
  }
}

Rest rest_behind(const Problem& problem, const Sequence* table) {
  if (problem.sequences == 0) return {};
  const Sequence& last = table[problem.sequences - 1];
  Rest rest{last.end, last.chunk_states_row};
  if (problem.state_every > 0) rest.row += (last.end - last.begin) / problem.state_every;
  return rest;
}

std::int64_t ChunkCursor::run_end() {
  if (problem_->packing != Packing::kSeqIdx) return sequence_.end;
  const std::int32_t id = run_id(*buffers_, sequence_.batch, t_);
  std::int64_t end = t_ + 1;
  while (end < sequence_.end && run_id(*buffers_, sequence_.batch, end) == id) ++end;
  return end;
}

Chunk ChunkCursor::next() {
  Chunk chunk;
  chunk.begin = t_;
  if (t_ >= run_end_) {
    chunk.reset = t_ > sequence_.begin;
    run_end_ = run_end();
  }
  std::int64_t end = std::min(t_ + q_, run_end_);
  if (problem_->state_every > 0) {
    const std::int64_t left = problem_->state_every - since_state_;
    if (left <= end - t_) {  // differences: state_every may be as large as its type allows
      end = t_ + left;
      since_state_ = 0;
      chunk.chunk_states_row = sequence_.chunk_states_row + states_written_++;
    } else {
      since_state_ += end - t_;
    }
  }
  chunk.len = end - t_;
  t_ = end;
  return chunk;
}

}  // namespace chunkscan
