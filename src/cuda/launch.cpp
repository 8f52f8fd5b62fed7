#include "cuda/launch.h"

#include "chunkscan/error.h"
#include "cuda/driver.h"

namespace chunkscan::cuda {

Element element_of(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return Element::kBF16;
    case DType::kF16: return Element::kF16;
    default: return Element::kF32;
  }
}

Packing packing_of(const Problem& problem) {
  switch (problem.packing) {
    case chunkscan::Packing::kNone: return Packing::kNone;
    case chunkscan::Packing::kCuSeqlens: return Packing::kOffsets;
    case chunkscan::Packing::kSeqIdx: return Packing::kRuns;
  }
  return Packing::kNone;
}

Tensor tensor_of(const Array& array, std::optional<DType> dtype) {
  Tensor tensor{};
  if (!dtype) return tensor;
  tensor.data = reinterpret_cast<u8*>(array.data);
  for (int i = 0; i < kMaxRank; ++i) tensor.strides[i] = array.strides[static_cast<std::size_t>(i)];
  tensor.dtype = element_of(*dtype);
  return tensor;
}

namespace {

template <class Params>
void fill_chunks(const StagedCall& call, Params& params) {
  params.chunking =
      chunking_of(call.problem, call.buffers, call.config.q, call.plan.workspace, call.workspace);
  params.decay = decay_of(call.problem, call.plan.workspace, call.workspace);
  params.h = static_cast<int>(call.problem.h);
}

}  // namespace

void fill_common(const StagedCall& call, ChunkCumsumParams& params) { fill_chunks(call, params); }

void fill_common(const StagedCall& call, FwdPassStateCommon& params) {
  const Problem& problem = call.problem;
  fill_chunks(call, params);
  params.initial_states = tensor_of(call.buffers.initial_states, problem.initial_states);
  params.final_states = tensor_of(call.buffers.final_states, problem.final_states);
  params.chunk_states = tensor_of(call.buffers.chunk_states, problem.chunk_states);
  params.final_states.rank = 4;
  params.chunk_states.rank = 5;
  params.log_decay = tensor_of(call.buffers.log_decay, problem.log_decay);
  params.heads_per_group = static_cast<int>(problem.heads_per_group());
}

void fill_common(const StagedCall& call, ComputeOutCommon& params) {
  const Problem& problem = call.problem;
  fill_chunks(call, params);
  params.D = tensor_of(call.buffers.D, problem.D);
  params.y = tensor_of(call.buffers.y, problem.y);
  params.heads_per_group = static_cast<int>(problem.heads_per_group());
  params.heads = call.config.out[0];
  params.has_initial_states = problem.initial_states.has_value();
  params.D_per_head_dim = problem.D_per_head_dim;
}

KernelKey key_of(const DeviceInfo& device, const char* file, const char* function,
                 const std::string& config, const char* params, int threads, int min_blocks) {
  KernelKey key;
  key.file = file;
  key.body = std::string("chunkscan::cuda::") + function + "<" + config + ">";
  key.params = std::string("chunkscan::cuda::") + params;
  key.threads = threads;
  key.min_blocks = min_blocks;
  key.architecture = device.architecture;
  return key;
}

void launch(const Step& step, std::int64_t blocks, const void* params, CUstream stream,
            bool follows) {
  if (blocks == 0) return;
  const Kernel* kernel = find_loaded(step.key);
  if (kernel == nullptr) {
    throw Error(ErrorKind::kRuntime,
                "[run] plan: expected one that prepare() was called with in "
                "this context, got one without kernels");
  }
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(blocks);
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = static_cast<unsigned>(step.key.threads);
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = step.shared_bytes;
  config.hStream = stream;
  CUlaunchAttribute overlap{};
  overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  overlap.value.programmaticStreamSerializationAllowed = 1;
  if (follows) {
    config.attrs = &overlap;
    config.numAttrs = 1;
  }
  void* arguments[] = {const_cast<void*>(params)};
  check(driver().cuLaunchKernelEx(&config, kernel->function, arguments, nullptr),
        "launch a kernel");
}

}  // namespace chunkscan::cuda
