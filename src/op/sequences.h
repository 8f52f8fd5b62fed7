// Which tokens belong to which sequence, and how a sequence is cut into chunks. Every backend on
// the CPU reads the packing through these two.
#pragma once

#include <algorithm>
#include <cstdint>

#include "op/buffers.h"
#include "op/problem.h"

namespace chunkscan {

// Tokens [begin, end) of batch row `batch`, with the initial and final state of index `state`.
// With seq_idx it is a whole row: the resets inside it are the chunks' matter.
struct Sequence {
  std::int64_t batch = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t state = 0;
  std::int64_t chunk_states_row = 0;  // first row of chunk_states
};

// cu_seqlens[i].
std::int64_t sequence_offset(const Problem& problem, const Buffers& buffers, std::int64_t i);

// Fills `table[0 .. problem.sequences)`. Offsets outside [0, l] and decreasing ones are clamped, so
// that unchecked contents never lead outside a buffer.
void fill_sequences(const Problem& problem, const Buffers& buffers, Sequence* table);

// What no sequence writes: rows of y from `token` on, rows of chunk_states from `row` on. Only
// where packed by cu_seqlens is there any.
struct Rest {
  std::int64_t token = 0;
  std::int64_t row = 0;
};
Rest rest_behind(const Problem& problem, const Sequence* table);

// `len` tokens from `begin` on, all of one run.
struct Chunk {
  std::int64_t begin = 0;
  std::int64_t len = 0;
  bool reset = false;                  // the state entering it is 0 instead of the one before
  std::int64_t chunk_states_row = -1;  // where the state after it goes, -1 = nowhere
};

// Cuts a sequence into chunks of at most q tokens that restart at the sequence's own start, at
// every change of seq_idx and at every multiple of state_every.
class ChunkCursor {
 public:
  ChunkCursor(const Problem& problem, const Buffers& buffers, const Sequence& sequence,
              std::int64_t q)
      : problem_(&problem), buffers_(&buffers), sequence_(sequence), q_(q), t_(sequence.begin) {}

  bool done() const { return t_ >= sequence_.end; }
  Chunk next();

 private:
  std::int64_t run_end();

  const Problem* problem_;
  const Buffers* buffers_;
  Sequence sequence_;
  std::int64_t q_;
  std::int64_t t_;
  std::int64_t run_end_ = -1;  // end of the run that t_ is in, -1 = not looked up
  std::int64_t states_written_ = 0;
  std::int64_t since_state_ = 0;  // tokens behind the last multiple of state_every
};

}  // namespace chunkscan
