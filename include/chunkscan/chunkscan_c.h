/* chunkscan for C, and for every language that can call C. The meaning of each tensor and option
 * stands in ssd.h; the functions are those of chunkscan.h.
 *
 * Every function that can fail returns a status; chunkscan_last_error() gives the sentence. None
 * prints, aborts or throws; all may be called from several threads at once.
 *
 *   chunkscan_inputs in = {.size = sizeof in};        // what is left 0 is absent
 *   in.x = ...
 *   chunkscan_outputs out = {.size = sizeof out};
 *   out.y = ...
 *   chunkscan_options options;
 *   chunkscan_options_init(&options, sizeof options);
 *   if (chunkscan_forward(&in, &out, &options, NULL) != CHUNKSCAN_OK) puts(chunkscan_last_error());
 *
 * Later versions add fields at the ends of the structs; `size` says which ones the caller has.
 */
#ifndef CHUNKSCAN_CHUNKSCAN_C_H_
#define CHUNKSCAN_CHUNKSCAN_C_H_

/* NOLINTBEGIN(modernize-use-using,modernize-deprecated-headers): this is C */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum chunkscan_status {
  CHUNKSCAN_OK = 0,
  CHUNKSCAN_INPUT = 1,       /* the caller's tensors or options are wrong; nothing was written */
  CHUNKSCAN_UNSUPPORTED = 2, /* right, but the chosen backend cannot do it; nothing was written */
  CHUNKSCAN_RUNTIME = 3      /* the machine failed: memory, driver, compiler */
} chunkscan_status;

enum {
  CHUNKSCAN_F64 = 0,
  CHUNKSCAN_F32 = 1,
  CHUNKSCAN_BF16 = 2,
  CHUNKSCAN_F16 = 3,
  CHUNKSCAN_I32 = 4,
  CHUNKSCAN_I64 = 5
};

enum { CHUNKSCAN_CPU = 0, CHUNKSCAN_CUDA = 1 };

enum { CHUNKSCAN_MAX_RANK = 5 };

/* Memory of the caller's. All zero: absent. Its fields never change. */
typedef struct chunkscan_tensor {
  void* data;           /* element [0, 0, ...]; NULL is enough for a plan */
  int32_t dtype;        /* CHUNKSCAN_F32, ... */
  int32_t device;       /* CHUNKSCAN_CPU or CHUNKSCAN_CUDA */
  int32_t device_index; /* 0, 1, ... of several GPUs */
  int32_t rank;         /* how many of the following count */
  int64_t shape[CHUNKSCAN_MAX_RANK];
  int64_t strides[CHUNKSCAN_MAX_RANK]; /* in elements */
} chunkscan_tensor;

typedef struct chunkscan_inputs {
  size_t size;         /* sizeof(chunkscan_inputs) */
  chunkscan_tensor x;  /* (b, l, h, p) */
  chunkscan_tensor dt; /* (b, l, h) */
  chunkscan_tensor A;  /* (h), f32 */
  chunkscan_tensor B;  /* (b, l, g, n) */
  chunkscan_tensor C;  /* (b, l, g, n) */
  /* optional from here on */
  chunkscan_tensor D;              /* (h) or (h, p) */
  chunkscan_tensor z;              /* (b, l, h, p) */
  chunkscan_tensor dt_bias;        /* (h) */
  chunkscan_tensor initial_states; /* (b, h, p, n), packed (s, h, p, n) */
  chunkscan_tensor seq_idx;        /* (b, l), i32 */
  chunkscan_tensor cu_seqlens;     /* (s + 1), i32 or i64 */
} chunkscan_inputs;

typedef struct chunkscan_outputs {
  size_t size;        /* sizeof(chunkscan_outputs) */
  chunkscan_tensor y; /* (b, l, h, p), x's dtype */
  /* optional from here on */
  chunkscan_tensor final_states; /* (b, h, p, n), packed (s, h, p, n) */
  chunkscan_tensor chunk_states; /* (b, l / state_every, h, p, n) */
  chunkscan_tensor log_decay;    /* (b, h), packed (s, h) */
} chunkscan_outputs;

/* Set by chunkscan_options_init, since not every default is 0. */
typedef struct chunkscan_options {
  size_t size;             /* sizeof(chunkscan_options) */
  int32_t dt_softplus;     /* 0 or 1 */
  int32_t batch_invariant; /* 0 or 1 */
  int32_t check_contents;  /* 0 or 1 */
  int32_t threads;         /* 0: OpenMP's default */
  float dt_min;
  float dt_max;             /* infinity by default */
  int64_t state_every;      /* tokens between two chunk_states */
  int64_t chunk_size;       /* 0: the library chooses */
  const char* backend;      /* NULL: the best one that can */
  const char* config;       /* NULL: the backend's default */
  const char* architecture; /* NULL: the tensors' device; else a GPU to plan for: "sm_90a" */
} chunkscan_options;

/* The defaults. `size`: sizeof *options, as the caller was compiled. */
void chunkscan_options_init(chunkscan_options* options, size_t size);

/* Checks, plans, prepares and runs. `options` may be NULL: the defaults. `stream`: a CUstream, NULL
 * on the CPU. */
chunkscan_status chunkscan_forward(const chunkscan_inputs* inputs, const chunkscan_outputs* outputs,
                                   const chunkscan_options* options, void* stream);

/* How calls with these shapes, dtypes and options are carried out: made once, used for many, from
 * any thread. */
typedef struct chunkscan_plan chunkscan_plan;

/* Needs shapes only, no memory. On failure *plan is NULL. */
chunkscan_status chunkscan_plan_make(const chunkscan_inputs* inputs,
                                     const chunkscan_outputs* outputs,
                                     const chunkscan_options* options, chunkscan_plan** plan);
void chunkscan_plan_destroy(chunkscan_plan* plan); /* NULL is fine */

/* Of a plan that is not NULL. The texts live as long as it does. */
const char* chunkscan_plan_backend(const chunkscan_plan* plan);
const char* chunkscan_plan_config(const chunkscan_plan* plan); /* for chunkscan_options.config */
const char* chunkscan_plan_text(const chunkscan_plan* plan);   /* one line with everything */
size_t chunkscan_plan_workspace_bytes(const chunkscan_plan* plan);
int32_t chunkscan_plan_threads(const chunkscan_plan* plan);

/* Compiles or loads what the plan needs, once for each device. */
chunkscan_status chunkscan_plan_prepare(const chunkscan_plan* plan);

/* Runs a prepared plan on tensors of its shapes and dtypes, allocating nothing. `workspace`: of
 * chunkscan_plan_workspace_bytes, 64-byte aligned, on the plan's device, of no other run at the
 * same time. */
chunkscan_status chunkscan_plan_run(const chunkscan_plan* plan, const chunkscan_inputs* inputs,
                                    const chunkscan_outputs* outputs, void* workspace,
                                    void* stream);

/* Kernels compiled ahead of time: see pack.h. */
chunkscan_status chunkscan_load_pack(const char* path);
/* Of `count` plans; *kernels, where not NULL, becomes how many kernels the pack holds. */
chunkscan_status chunkscan_write_pack(const chunkscan_plan* const* plans, size_t count,
                                      const char* path, size_t* kernels);

/* The calling thread's last failure, one sentence; "" before any. Valid until its next one. */
const char* chunkscan_last_error(void);

/* "major.minor.patch" of the library that is linked. */
const char* chunkscan_version(void);

/* The backends of this build, best first: 0 <= index < chunkscan_backend_count(). Outside: NULL. */
int32_t chunkscan_backend_count(void);
const char* chunkscan_backend_name(int32_t index);
/* Why it cannot be used on this machine, a sentence; "" where it can. */
const char* chunkscan_backend_reason(int32_t index);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-use-using,modernize-deprecated-headers) */

#endif /* CHUNKSCAN_CHUNKSCAN_C_H_ */
