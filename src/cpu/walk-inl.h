// The routes: windows of chunks over blocks of heads. `Products` is the arithmetic of the matrix
// products: Fp32 or NativeBf16. Per-target include guard, see Highway.
#if defined(CHUNKSCAN_CPU_WALK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_WALK_INL_H
#undef CHUNKSCAN_CPU_WALK_INL_H
#else
#define CHUNKSCAN_CPU_WALK_INL_H
#endif

#include <algorithm>

#include "cpu/call.h"
#include "cpu/chunk-inl.h"
#include "cpu/prepare-inl.h"
#include "cpu/products-inl.h"
#include "hwy/cache_control.h"
#include "op/element.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

// A stretch of a sequence: the first `count` chunks of its block's scratch.
struct Window {
  std::int64_t count;
  bool first;  // the sequence begins here
  bool last;   // and ends here
};

// (p, n) in any dtype to (n, p) in fp32, the slice's columns. Returns their largest magnitude.
HWY_NOINLINE float load_state(const CpuLayout& layout, DType dtype, const Array& states,
                              std::int64_t i, const Slice& slice, float* state, float* rows) {
  V most = hn::Zero(f32);
  const auto load = [&](std::int64_t column, float* row) HWY_ATTR {
    most = larger(
        load_row(dtype, states.at(i, slice.head, column), states.strides[3], layout.n, row), most);
  };
  for (std::int64_t k = 0; k < slice.count; ++k) load(slice.begin + k, rows + k * layout.n16);
  std::fill(rows + slice.count * layout.n16, rows + padded(slice.count) * layout.n16, 0.0f);
  transpose(rows, layout.n16, padded(slice.count), layout.n, state, layout.slice);
  return hn::GetLane(hn::MaxOfLanes(f32, most));
}

// Before anything is written: final_states may be initial_states, and a slice that is done would
// change what another one has to see.
HWY_NOINLINE void find_initial_most(const CpuCall& call, std::int64_t sequence, std::int64_t head,
                                    const WorkerScratch& worker) {
  const Array& states = call.buffers.initial_states;
  V most = hn::Zero(f32);
  for (std::int64_t column = 0; column < call.layout.p; ++column) {
    most = larger(load_row(*call.problem.initial_states, states.at(sequence, head, column),
                           states.strides[3], call.layout.n, worker.rows()),
                  most);
  }
  initial_most(call, sequence, head) = hn::GetLane(hn::MaxOfLanes(f32, most));
}

HWY_NOINLINE void store_state(const CpuLayout& layout, DType dtype, std::byte* to,
                              std::int64_t p_stride_bytes, std::int64_t n_stride,
                              const Slice& slice, const float* state, float* rows) {
  transpose(state, layout.slice, layout.n, padded(slice.count), rows, layout.n16);
  for (std::int64_t k = 0; k < slice.count; ++k) {
    store_row(dtype, to + (slice.begin + k) * p_stride_bytes, n_stride, layout.n,
              rows + k * layout.n16);
  }
}

inline bool enters_with_state(const CpuCall& call, const Block& block, const Window& window,
                              std::int64_t w) {
  if (block.scratch.chunk(w).reset) return false;
  return w > 0 || !window.first || call.buffers.initial_states;
}

HWY_INLINE void store_chunk_state(const CpuCall& call, const Block& block, std::int64_t w,
                                  const Slice& slice, const float* state,
                                  const WorkerScratch& worker) {
  const Array& states = call.buffers.chunk_states;
  const std::int64_t row = block.scratch.chunk(w).chunk_states_row;
  if (row < 0) return;
  store_state(
      call.layout, *call.problem.chunk_states, states.at(block.sequence.batch, row, slice.head),
      states.strides[3] * states.element_bytes, states.strides[4], slice, state, worker.rows());
}

HWY_INLINE void begin_slice(const CpuCall& call, const Block& block, const Window& window,
                            const Slice& slice, float* state, const WorkerScratch& worker) {
  if (window.first && call.buffers.initial_states) {
    const float most =
        load_state(call.layout, *call.problem.initial_states, call.buffers.initial_states,
                   block.sequence.state, slice, state, worker.rows());
    Carried& carried = block.scratch.carried(slice.head_in_block);
    carried = Carried();
    carried.most =
        call.layout.slices > 1 ? initial_most(call, block.sequence.state, slice.head) : most;
  }
}

HWY_INLINE void end_slice(const CpuCall& call, const Block& block, const Window& window,
                          const Slice& slice, float* state, const WorkerScratch& worker) {
  const Array& states = call.buffers.final_states;
  if (!window.last || !states) return;
  if (window.first && window.count == 0 && !call.buffers.initial_states) {  // an empty sequence
    for (std::int64_t k = 0; k < call.layout.n; ++k) {
      float* row = state + k * call.layout.slice;
      std::fill(row, row + padded(slice.count), 0.0f);
    }
  }
  store_state(call.layout, *call.problem.final_states, states.at(block.sequence.state, slice.head),
              states.strides[2] * states.element_bytes, states.strides[3], slice, state,
              worker.rows());
}

// Nobody reads the state after the sequence's last chunk.
inline bool state_is_wanted(const CpuCall& call, const Block& block, const Window& window,
                            std::int64_t w) {
  return !window.last || w + 1 < window.count || call.buffers.final_states ||
         block.scratch.chunk(w).chunk_states_row >= 0;
}

inline Ahead ahead_of(const Block& block, const Slice& slice, std::int64_t w) {
  return {slice, block.scratch.chunk(w)};
}

// Route walk (and recurrence): the state goes through the window's chunks, y comes out on the way.
template <class Products>
HWY_NOINLINE void walk_slice(const CpuCall& call, const Block& block, const Window& window,
                             const Slice& slice, const Slice& next_slice,
                             const WorkerScratch& worker) {
  float* state = block.scratch.state(slice.head_in_block);
  begin_slice(call, block, window, slice, state, worker);
  for (std::int64_t w = 0; w < window.count; ++w) {
    const bool has_state = enters_with_state(call, block, window, w);
    const float most_x = load_X(call, block, w, slice, worker);
    const std::int64_t head = slice.head_in_block;
    const Carried entering = enter_chunk(block.scratch, w, head, has_state, most_x, worker);
    const std::int64_t chunked =
        call.config.route == Route::kRecurrence
            ? 0
            : chunked_tokens(call, block.scratch, w, head, most_x, entering.most, worker);
    if (chunked > 0) {
      const Ahead ahead =
          w + 1 < window.count ? ahead_of(block, slice, w + 1) : ahead_of(block, next_slice, 0);
      output_chunk<Products>(call, block, w, slice, chunked, has_state ? state : nullptr, ahead,
                             worker);
    }
    if (chunked < block.scratch.chunk(w).len) {
      recurrence_chunk(call, block, w, slice, chunked, most_x, entering, state, has_state, worker);
    } else if (state_is_wanted(call, block, window, w)) {
      state_chunk<Products>(call.layout, block.scratch, w, slice, entering, state, has_state,
                            worker);
    }
    store_chunk_state(call, block, w, slice, state, worker);
  }
  end_slice(call, block, window, slice, state, worker);
  hwy::FlushStream();  // streamed y must be seen by whoever waits for this thread
}

// Route staged, second step: the states entering the window's chunks, and y of the tokens that are
// not chunked.
template <class Products>
HWY_NOINLINE void fwd_pass_state(const CpuCall& call, const Block& block, const Window& window,
                                 const Slice& slice, const WorkerScratch& worker) {
  const CpuLayout& layout = call.layout;
  float* state = block.scratch.state(slice.head_in_block);
  begin_slice(call, block, window, slice, state, worker);
  for (std::int64_t w = 0; w < window.count; ++w) {
    const bool has_state = enters_with_state(call, block, window, w);
    if (has_state) {
      float* entering = block.scratch.entering(w, slice.head_in_block);
      for (std::int64_t k = 0; k < layout.n; ++k) {
        const float* row = state + k * layout.slice;
        std::copy(row, row + padded(slice.count), entering + k * layout.slice);
      }
    }
    const float most_x = load_X(call, block, w, slice, worker);
    std::int64_t& chunked = block.scratch.sums(w, slice.head_in_block).chunked;
    const std::int64_t head = slice.head_in_block;
    const Carried entering = enter_chunk(block.scratch, w, head, has_state, most_x, worker);
    chunked = chunked_tokens(call, block.scratch, w, head, most_x, entering.most, worker);
    if (chunked < block.scratch.chunk(w).len) {
      recurrence_chunk(call, block, w, slice, chunked, most_x, entering, state, has_state, worker);
    } else {
      state_chunk<Products>(layout, block.scratch, w, slice, entering, state, has_state, worker);
    }
    store_chunk_state(call, block, w, slice, state, worker);
  }
  end_slice(call, block, window, slice, state, worker);
}

// Route staged, third step: y of chunk w, from the state that enters it.
template <class Products>
HWY_NOINLINE void compute_out(const CpuCall& call, const Block& block, const Window& window,
                              std::int64_t w, const Slice& slice, const WorkerScratch& worker) {
  const std::int64_t chunked = block.scratch.sums(w, slice.head_in_block).chunked;
  if (chunked == 0) return;
  const float* state = enters_with_state(call, block, window, w)
                           ? block.scratch.entering(w, slice.head_in_block)
                           : nullptr;
  load_X(call, block, w, slice, worker);
  output_chunk<Products>(call, block, w, slice, chunked, state, ahead_of(block, slice, w), worker);
  hwy::FlushStream();
}

template <class Products>
HWY_NOINLINE void run_window(const CpuCall& call, const Block& block, const Window& window,
                             const WorkerScratch& worker) {
  const auto slice_at = [&](std::int64_t head) {
    return Slice{head, block.first_head + head, block.begin, block.count};
  };
  for (std::int64_t w = 0; w < window.count; ++w) prepare_chunk<Products>(call, block, w, worker);
  if (call.config.route != Route::kStaged) {
    for (std::int64_t head = 0; head < block.heads; ++head) {
      walk_slice<Products>(call, block, window, slice_at(head),
                           slice_at(std::min(head + 1, block.heads - 1)), worker);
    }
    return;
  }
  for (std::int64_t head = 0; head < block.heads; ++head) {
    fwd_pass_state<Products>(call, block, window, slice_at(head), worker);
  }
  for (std::int64_t head = 0; head < block.heads; ++head) {
    for (std::int64_t w = 0; w < window.count; ++w) {
      compute_out<Products>(call, block, window, w, slice_at(head), worker);
    }
  }
}

template <class Products>
HWY_NOINLINE void run_block(const CpuCall& call, const Block& block, const WorkerScratch& worker) {
  const BlockScratch& scratch = block.scratch;
  for (std::int64_t head = 0; head < block.heads; ++head) scratch.log_decay(head) = 0.0;
  ChunkCursor cursor(call.problem, call.buffers, block.sequence, call.layout.q);
  Window window{0, true, false};
  while (!window.last) {
    window.count = 0;
    while (window.count < call.layout.window && !cursor.done()) {
      scratch.chunk(window.count++) = cursor.next();
    }
    window.last = cursor.done();
    run_window<Products>(call, block, window, worker);
    for (std::int64_t head = 0; head < block.heads; ++head) {
      for (std::int64_t w = 0; w < window.count; ++w) {
        scratch.log_decay(head) += scratch.sums(w, head).log_decay;
      }
    }
    window.first = false;
  }
  if (!call.buffers.log_decay || block.begin > 0) return;
  for (std::int64_t head = 0; head < block.heads; ++head) {
    store_element(DType::kF32,
                  call.buffers.log_decay.at(block.sequence.state, block.first_head + head),
                  scratch.log_decay(head));
  }
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
