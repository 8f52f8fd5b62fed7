// Which tokens a chunk holds.
#pragma once

#include "params.h"

namespace chunkscan::cuda {

struct Chunk {
  i64 row;               // of the batch
  i64 begin;             // token in the row
  int len;               // 0 = the slot is empty
  int sequence;          // index of its states
  bool first;            // no chunk of its sequence before it
  i64 chunk_states_row;  // of its sequence, where the state after it goes; -1 = nowhere
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

template <Packing packing>
__device__ inline Span tokens_of(const Chunking& c, i64 sequence) {
  if constexpr (packing == Packing::kNone) return {0, c.l};
  return {offset_at(c, sequence), offset_at(c, sequence + 1)};
}

// Slots that a sequence starting at token t of the row leaves to those before it. Chunks of tokens
// [s, t) number at most slots_before(t) - slots_before(s) + 1.
template <int q>
__device__ inline i64 slots_before(const Chunking& c, i64 t) {
  if (c.state_every == 0) return t / q;
  return t / c.state_every * c.chunks_per_state + t % c.state_every / q;
}

template <int q, Packing packing>
__device__ inline i64 first_slot(const Chunking& c, i64 sequence) {
  if constexpr (packing == Packing::kNone) return sequence * c.slots_per_row;
  return slots_before<q>(c, offset_at(c, sequence)) + sequence;
}

// Chunk j of a sequence.
template <int q, Packing packing>
__device__ inline Chunk chunk_of(const Chunking& c, i64 sequence, i64 j) {
  const Span span = tokens_of<packing>(c, sequence);
  i64 begin = span.begin + j * q, end = span.end, row = -1;
  if (c.state_every != 0) {
    const i64 k = j / c.chunks_per_state;
    begin = span.begin + k * c.state_every + j % c.chunks_per_state * q;
    const i64 cut = span.begin + (k + 1) * c.state_every;
    if (cut <= end) {
      if (begin + q >= cut) row = k;
      end = cut;
    }
  }
  const i64 left = end - begin;
  Chunk chunk;
  chunk.row = packing == Packing::kNone ? sequence : 0;
  chunk.begin = begin;
  chunk.len = left <= 0 ? 0 : left < q ? static_cast<int>(left) : q;
  chunk.sequence = static_cast<int>(sequence);
  chunk.first = j == 0;
  chunk.chunk_states_row = row;
  return chunk;
}

template <int q, Packing packing>
__device__ inline Chunk chunk_at(const Chunking& c, i64 slot) {
  if constexpr (packing == Packing::kNone) {
    return chunk_of<q, packing>(c, slot / c.slots_per_row, slot % c.slots_per_row);
  }
  i64 low = 0, high = c.sequences - 1;  // the last sequence whose first slot is at most `slot`
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

}  // namespace chunkscan::cuda
