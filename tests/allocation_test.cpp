// run() allocates nothing once it is warm: every allocation of this process is counted.
#include <atomic>
#include <cstddef>
#include <new>

#include "conformance/runners.h"

namespace {
std::atomic<long> allocations = 0;
}

// glibc's own entry points; operator new and aligned_alloc of the C++ library end in these.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  ++allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? 12 : 0;  // ENOMEM
}
}

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::PackedBy;

class Allocations : public Conformance {};

long allocations_of_a_warm_run(const Case& c, const Options& options) {
  const Plan plan = make_plan(c.inputs, c.outputs, options);
  prepare(plan);
  const testkit::Block workspace(plan.workspace_bytes());
  for (int i = 0; i < 2; ++i) run(plan, c.inputs, c.outputs, workspace.data());
  const long before = allocations;
  chunkscan::run(plan, c.inputs, c.outputs, workspace.data());
  return allocations - before;
}

TEST_P(Allocations, AreCounted) {
  const long before = allocations;
  const std::vector<int> memory(100);
  EXPECT_EQ(allocations - before, 1) << memory.size();
}

TEST_P(Allocations, NoneInAWarmRun) {
  CaseSpec spec;
  spec.l = 200;
  spec.z = true;
  spec.initial_states = spec.final_states = DType::kBF16;
  spec.chunk_states = DType::kF32;
  spec.state_every = 30;
  spec.log_decay = true;
  for (int threads : {1, 2}) {
    for (DType dtype : {DType::kF32, DType::kF16}) {
      spec.dtype = dtype;
      spec.packed_by = PackedBy::kNothing;
      spec.b = 3;
      Case batch = make(spec);
      batch.options.threads = threads;
      EXPECT_EQ(allocations_of_a_warm_run(batch, with(batch.options)), 0);
      spec.packed_by = PackedBy::kCuSeqlens;
      spec.b = 1;
      spec.lengths = {70, 0, 110};
      Case packed = make(spec);
      packed.options.threads = threads;
      EXPECT_EQ(allocations_of_a_warm_run(packed, with(packed.options)), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Allocations, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
