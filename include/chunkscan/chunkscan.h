// chunkscan: the Mamba-2 forward pass (SSD).
//
// Call once: forward(). Call often: make_plan() once, prepare() once, then run() with a workspace
// of your own. All functions throw chunkscan::Error, may be called from several threads at once,
// never print and never abort. Every user mistake is found before any work starts and leaves all
// outputs untouched.
#pragma once

#include "chunkscan/backends.h"
#include "chunkscan/error.h"
#include "chunkscan/memory.h"
#include "chunkscan/plan.h"
#include "chunkscan/ssd.h"
#include "chunkscan/tensor.h"
#include "chunkscan/version.h"

namespace chunkscan {

// Checks, plans, prepares and runs, with a scratch buffer that the calling thread keeps for its
// next call. `stream` is the GPU stream to run on (a CUstream); CPU backends ignore it.
void forward(const Inputs& inputs, const Outputs& outputs, const Options& options = {},
             void* stream = nullptr);

// Decides how a call with these shapes, dtypes and options is carried out. Reads no data: views
// without memory are enough. A plan may be for an instruction set that this machine lacks
// (all_cpu_instruction_sets()): it prints, but prepare() and run() refuse it.
Plan make_plan(const Inputs& inputs, const Outputs& outputs, const Options& options = {});

// Compiles or loads what the plan needs; once per plan and device. On the CPU it only makes sure
// that the machine has the plan's instruction set.
void prepare(const Plan& plan);

// Runs a prepared plan on tensors with the plan's shapes, dtypes and presence (strides and
// addresses are free; on a GPU x, B, C, z and y must be no less aligned than those of the plan).
// Chooses nothing and allocates nothing once warm. It checks only that the tensors fit the plan
// and, on the CPU, the contents of cu_seqlens; devices and overlap are the caller's duty here, and
// forward() is the way that checks them. `workspace`: workspace_bytes() of memory on the plan's
// device, aligned to kAlignment (memory.h), not shared with a concurrent run. On a GPU the work is
// queued on `stream` without synchronising; faults of the device surface at the caller's next
// synchronisation.
void run(const Plan& plan, const Inputs& inputs, const Outputs& outputs, void* workspace,
         void* stream = nullptr);

}  // namespace chunkscan
