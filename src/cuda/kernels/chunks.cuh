// Which tokens a chunk holds.
#pragma once

#include "params.h"

namespace chunkscan::cuda {

struct Chunk {
  i64 row;     // of the batch
  i64 begin;   // token in the row
  int len;     // 0 = the slot is empty
  bool first;  // no chunk of its sequence before it
};

struct Span {
  i64 begin, end;
};

__device__ inline i64 offset_at(const Chunking& c, i64 i) {
  i *= c.offsets_stride;
  const i64 value =
      c.offsets_64 ? static_cast<const i64*>(c.offsets)[i] : static_cast<const int*>(c.offsets)[i];
  return value < 0 ? 0 : value > c.l ? c.l : value;  // bad contents stay inside the buffers
}

// In the row; kRuns: in all rows one behind the other.
template <Packing packing>
__device__ inline Span tokens_of(const Chunking& c, i64 sequence) {
  if constexpr (packing == Packing::kNone) return {0, c.l};
  if constexpr (packing == Packing::kRuns) return {c.runs[sequence], c.runs[sequence + 1]};
  return {offset_at(c, sequence), offset_at(c, sequence + 1)};
}

template <Packing packing>
__device__ inline i64 sequences(const Chunking& c) {
  if constexpr (packing == Packing::kRuns) return c.row_runs[c.sequences];
  return c.sequences;
}

// Slots that a sequence starting at token t leaves to those before it. Chunks of tokens [s, t)
// number at most slots_before(t) - slots_before(s) + 1.
template <int q>
__device__ inline i64 slots_before(const Chunking& c, i64 t) {
  if (c.state_every == 0) return t / q;
  return t / c.state_every * c.chunks_per_state + t % c.state_every / q;
}

template <int q, Packing packing>
__device__ inline i64 first_slot(const Chunking& c, i64 sequence) {
  if constexpr (packing == Packing::kNone) return sequence * c.slots_per_row;
  if constexpr (packing == Packing::kRuns) return c.runs[sequence] / q + sequence;
  return slots_before<q>(c, offset_at(c, sequence)) + sequence;
}

// Only the device knows how many runs there are.
template <int q, Packing packing>
__device__ inline i64 slots(const Chunking& c) {
  if constexpr (packing == Packing::kRuns)
    return first_slot<q, packing>(c, c.row_runs[c.sequences]);
  return c.slots;
}

__device__ inline int length_of(i64 left, int q) {
  return left <= 0 ? 0 : left < q ? static_cast<int>(left) : q;
}

// Chunk j of a sequence.
template <int q, Packing packing>
__device__ inline Chunk chunk_of(const Chunking& c, i64 sequence, i64 j) {
  const Span span = tokens_of<packing>(c, sequence);
  i64 begin = span.begin + j * q, end = span.end;
  if (packing != Packing::kRuns && c.state_every != 0) {
    const i64 k = j / c.chunks_per_state;
    begin = span.begin + k * c.state_every + j % c.chunks_per_state * q;
    const i64 cut = span.begin + (k + 1) * c.state_every;
    if (cut < end) end = cut;
  }
  Chunk chunk;
  chunk.row = packing == Packing::kNone ? sequence : packing == Packing::kRuns ? begin / c.l : 0;
  chunk.begin = packing == Packing::kRuns ? begin - chunk.row * c.l : begin;
  chunk.len = length_of(end - begin, q);
  chunk.first = j == 0;
  return chunk;
}

template <int q, Packing packing>
__device__ inline Chunk chunk_at(const Chunking& c, i64 slot) {
  if constexpr (packing == Packing::kNone) {
    return chunk_of<q, packing>(c, slot / c.slots_per_row, slot % c.slots_per_row);
  }
  if (sequences<packing>(c) == 0) return {};
  i64 low = 0, high = sequences<packing>(c) - 1;  // the last whose first slot is at most `slot`
  while (low < high) {
    const i64 middle = (low + high + 1) / 2;
    if (first_slot<q, packing>(c, middle) <= slot) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return chunk_of<q, packing>(c, low, slot - first_slot<q, packing>(c, low));
}

// The chunks that one block of fwd_pass_state goes through: a sequence's; kRuns: all of a row's.
template <int q, Packing packing>
struct ChunkWalk {
  i64 start, end;  // of the sequence
  i64 cut;         // the next multiple of state_every
  Chunk chunk;     // empty: the end

  __device__ ChunkWalk(const Chunking& c, i64 sequence) {
    const Span span = tokens_of<packing>(c, sequence);
    start = span.begin;
    end = span.end;
    cut = start + c.state_every;
    chunk.row = packing == Packing::kNone ? sequence : 0;
    chunk.begin = start;
    chunk.first = true;
    set_length(c);
  }
  __device__ void next(const Chunking& c) {
    chunk.begin += chunk.len;
    chunk.first = false;
    if (c.state_every != 0 && chunk.begin == cut) cut += c.state_every;
    set_length(c);
  }
  __device__ void set_length(const Chunking& c) {
    const i64 stop = c.state_every != 0 && cut < end ? cut : end;
    chunk.len = length_of(stop - chunk.begin, q);
  }
  // Row of chunk_states for the state after the chunk, of a sequence with `before` rows before it;
  // -1: none. Bad contents of cu_seqlens stay inside the buffer.
  __device__ i64 chunk_states_row(const Chunking& c, i64 before) const {
    if (chunk.begin + chunk.len != cut) return -1;
    const i64 row = before + (cut - start) / c.state_every - 1;
    return packing == Packing::kNone || row < c.l / c.state_every ? row : -1;
  }
};

template <int q>
struct ChunkWalk<q, Packing::kRuns> {
  i64 run;
  i64 run_end;  // in the row
  Chunk chunk;

  __device__ ChunkWalk(const Chunking& c, i64 row) : run(c.row_runs[row]) {
    chunk.row = row;
    start(c, 0);
  }
  __device__ void next(const Chunking& c) {
    const i64 begin = chunk.begin + chunk.len;
    if (begin == run_end) {
      ++run;
      start(c, begin);
    } else {
      chunk.begin = begin;
      chunk.first = false;
      set_length();
    }
  }
  __device__ void start(const Chunking& c, i64 begin) {
    chunk.begin = begin;
    chunk.first = true;
    run_end = begin < c.l ? c.runs[run + 1] - chunk.row * c.l : begin;
    set_length();
  }
  __device__ void set_length() { chunk.len = length_of(run_end - chunk.begin, q); }
  __device__ i64 chunk_states_row(const Chunking&, i64) const { return -1; }
};

// Whether the sequence starts with nothing though another went before it in the walk.
template <Packing packing>
__device__ inline bool starts_empty(const Chunk& chunk) {
  return packing == Packing::kRuns && chunk.first && chunk.begin > 0;
}

// Whether a state enters the chunk.
template <Packing packing>
__device__ inline bool has_state(const Chunk& chunk, bool initial_states) {
  return !chunk.first || (initial_states && !starts_empty<packing>(chunk));
}

// Where the state that enters the chunk at `slot` is kept. With kRuns, slots may be many more than
// states: a chunk that continues a run has q of its tokens before it, so no two start inside the
// same q tokens; apart from them only the first of a row has a state.
template <int q, Packing packing>
__device__ inline i64 state_slot(const Chunking& c, const Chunk& chunk, i64 slot) {
  if constexpr (packing != Packing::kRuns) return slot;
  if (chunk.first) return chunk.row;
  return c.sequences + (chunk.row * c.l + chunk.begin) / q;
}

// The decay over a chunk, from the number at chunk_decay_at(). With kRuns that is the last token's
// cs, as slots may be many.
template <Packing packing>
__device__ inline const float* chunk_decay_at(const Decay& decay, const Chunk& chunk, i64 slot,
                                              int h, int head) {
  if constexpr (packing != Packing::kRuns) return decay.chunk + slot * h + head;
  return &decay.cs_dt[(chunk.row * h + head) * decay.l_pad + chunk.begin + chunk.len - 1].cs;
}
template <Packing packing>
__device__ inline float chunk_decay(float number) {
  return packing == Packing::kRuns ? exp2f(number) : number;
}

// Rows of chunk_states that the sequences before this one fill. By a warp.
template <Packing packing>
__device__ inline i64 chunk_states_before(const Chunking& c, i64 sequence) {
  i64 rows = 0;
  if constexpr (packing == Packing::kOffsets) {
    for (i64 i = threadIdx.x % 32; i < sequence; i += 32) {
      const Span span = tokens_of<packing>(c, i);
      if (span.end > span.begin) rows += (span.end - span.begin) / c.state_every;
    }
    for (int step = 16; step > 0; step /= 2) rows += __shfl_xor_sync(~0u, rows, step);
  }
  return rows;
}

// visit(row) for the rows of chunk_states that no sequence fills: each sequence takes its share.
template <Packing packing, class F>
__device__ inline void for_each_chunk_states_row_behind(const Chunking& c, i64 sequence,
                                                        F&& visit) {
  if constexpr (packing == Packing::kOffsets) {
    i64 row = chunk_states_before<packing>(c, c.sequences) + sequence;
    for (; row < c.l / c.state_every; row += c.sequences) visit(row);
  }
}

}  // namespace chunkscan::cuda
