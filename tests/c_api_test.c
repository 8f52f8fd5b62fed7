/* The C interface, from C: a small result, every status, plans, and structs of other versions. */
#include "chunkscan/chunkscan_c.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int right, const char* what, int line) {
  if (right) return;
  printf("%s:%d: expected %s; the last error is \"%s\"\n", __FILE__, line, what,
         chunkscan_last_error());
  ++failures;
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

enum { kTokens = 5, kHeads = 2, kHeadDim = 3, kStates = 4 };

typedef struct Call {
  float x[kTokens][kHeads][kHeadDim], dt[kTokens][kHeads], A[kHeads];
  float B[kTokens][kStates], C[kTokens][kStates];
  float y[kTokens][kHeads][kHeadDim], final_states[kHeads][kHeadDim][kStates];
  chunkscan_inputs inputs;
  chunkscan_outputs outputs;
} Call;

static chunkscan_tensor tensor(void* data, int rank, const int64_t* shape) {
  chunkscan_tensor t;
  int i;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.dtype = CHUNKSCAN_F32;
  t.device = CHUNKSCAN_CPU;
  t.rank = rank;
  for (i = rank - 1; i >= 0; --i) {
    t.shape[i] = shape[i];
    t.strides[i] = i == rank - 1 ? 1 : t.strides[i + 1] * shape[i + 1];
  }
  return t;
}

static void fill(float* values, size_t bytes, float scale) {
  size_t i;
  for (i = 0; i < bytes / sizeof *values; ++i) values[i] = scale * sinf(1.0f + 2.3f * (float)i);
}

static Call make_call(void) {
  Call call;
  memset(&call, 0, sizeof call);
  fill(&call.x[0][0][0], sizeof call.x, 1.0f);
  fill(&call.dt[0][0], sizeof call.dt, 0.3f);
  fill(&call.B[0][0], sizeof call.B, 0.7f);
  fill(&call.C[0][0], sizeof call.C, 0.9f);
  call.A[0] = -1.0f;
  call.A[1] = -0.1f;
  return call;
}

/* The structs point into the call, so they are set where it stays. */
static void describe(Call* call) {
  const int64_t x[] = {1, kTokens, kHeads, kHeadDim}, dt[] = {1, kTokens, kHeads};
  const int64_t A[] = {kHeads}, B[] = {1, kTokens, 1, kStates};
  const int64_t states[] = {1, kHeads, kHeadDim, kStates};
  call->inputs.size = sizeof call->inputs;
  call->inputs.x = tensor(call->x, 4, x);
  call->inputs.dt = tensor(call->dt, 3, dt);
  call->inputs.A = tensor(call->A, 1, A);
  call->inputs.B = tensor(call->B, 4, B);
  call->inputs.C = tensor(call->C, 4, B);
  call->outputs.size = sizeof call->outputs;
  call->outputs.y = tensor(call->y, 4, x);
  call->outputs.final_states = tensor(call->final_states, 4, states);
}

/* The recurrence of ssd.h, with softplus. */
static double largest_error(const Call* call) {
  double worst = 0.0;
  int t, h, p, n;
  for (h = 0; h < kHeads; ++h) {
    double S[kHeadDim][kStates] = {{0.0}};
    for (t = 0; t < kTokens; ++t) {
      const double dt = log1p(exp(call->dt[t][h])), a = exp(dt * call->A[h]);
      for (p = 0; p < kHeadDim; ++p) {
        double y = 0.0;
        for (n = 0; n < kStates; ++n) {
          S[p][n] = a * S[p][n] + dt * call->x[t][h][p] * call->B[t][n];
          y += S[p][n] * call->C[t][n];
        }
        worst = fmax(worst, fabs(y - call->y[t][h][p]));
      }
    }
    for (p = 0; p < kHeadDim; ++p) {
      for (n = 0; n < kStates; ++n) {
        worst = fmax(worst, fabs(S[p][n] - call->final_states[h][p][n]));
      }
    }
  }
  return worst;
}

static chunkscan_options softplus(void) {
  chunkscan_options options;
  chunkscan_options_init(&options, sizeof options);
  options.dt_softplus = 1;
  return options;
}

static void forward_gives_the_result(void) {
  Call call = make_call();
  const chunkscan_options options = softplus();
  describe(&call);
  EXPECT(chunkscan_forward(&call.inputs, &call.outputs, &options, NULL) == CHUNKSCAN_OK);
  EXPECT(largest_error(&call) < 1e-6);
  EXPECT(chunkscan_forward(&call.inputs, &call.outputs, NULL, NULL) == CHUNKSCAN_OK);
  EXPECT(largest_error(&call) > 1e-3); /* without softplus */
}

static void plan_runs(void) {
  Call call = make_call();
  chunkscan_options options = softplus();
  chunkscan_plan* plan = NULL;
  void* workspace;
  describe(&call);
  options.threads = 1;
  options.backend = "cpu";
  EXPECT(chunkscan_plan_make(&call.inputs, &call.outputs, &options, &plan) == CHUNKSCAN_OK);
  if (plan == NULL) return;
  EXPECT(strcmp(chunkscan_plan_backend(plan), "cpu") == 0);
  EXPECT(strstr(chunkscan_plan_text(plan), chunkscan_plan_config(plan)) != NULL);
  EXPECT(chunkscan_plan_threads(plan) == 1);
  EXPECT(chunkscan_plan_prepare(plan) == CHUNKSCAN_OK);
  workspace = aligned_alloc(64, (chunkscan_plan_workspace_bytes(plan) / 64 + 1) * 64);
  EXPECT(chunkscan_plan_run(plan, &call.inputs, &call.outputs, workspace, NULL) == CHUNKSCAN_OK);
  EXPECT(largest_error(&call) < 1e-6);
  call.inputs.x.shape[1] = kTokens - 1;
  EXPECT(chunkscan_plan_run(plan, &call.inputs, &call.outputs, workspace, NULL) ==
         CHUNKSCAN_INPUT);
  free(workspace);
  chunkscan_plan_destroy(plan);
  chunkscan_plan_destroy(NULL);
}

static void refused(const Call* call, const chunkscan_options* options, chunkscan_status status,
                    const char* sentence, int line) {
  expect(chunkscan_forward(&call->inputs, &call->outputs, options, NULL) == status, sentence, line);
  expect(strstr(chunkscan_last_error(), sentence) != NULL, sentence, line);
}
#define REFUSED(call, options, status, sentence) refused(call, options, status, sentence, __LINE__)

static void mistakes_are_sentences(void) {
  Call call = make_call();
  chunkscan_options options = softplus();
  chunkscan_plan* plan = NULL;
  describe(&call);
  call.inputs.C.shape[3] = kStates + 1;
  REFUSED(&call, &options, CHUNKSCAN_INPUT,
          "[forward] C: expected shape (b, l, g, n) = (1, 5, 1, 4), got (1, 5, 1, 5)");
  EXPECT(chunkscan_plan_make(&call.inputs, &call.outputs, &options, &plan) == CHUNKSCAN_INPUT);
  EXPECT(plan == NULL);
  describe(&call);
  call.inputs.dt.dtype = 6;
  REFUSED(&call, &options, CHUNKSCAN_INPUT, "[forward] dt: expected dtype from 0 to 5, got 6");
  describe(&call);
  call.inputs.B.rank = 6;
  REFUSED(&call, &options, CHUNKSCAN_INPUT, "[forward] B: expected rank from 0 to 5, got 6");
  describe(&call);
  call.outputs.y.device = -1;
  REFUSED(&call, &options, CHUNKSCAN_INPUT, "[forward] y: expected device from 0 to 1, got -1");
  describe(&call);
  options.backend = "nobody";
  REFUSED(&call, &options, CHUNKSCAN_INPUT, "nobody");
  EXPECT(chunkscan_forward(NULL, &call.outputs, NULL, NULL) == CHUNKSCAN_INPUT);
  EXPECT(strcmp(chunkscan_last_error(), "[forward] inputs: expected a struct, got NULL") == 0);
  EXPECT(chunkscan_plan_make(&call.inputs, &call.outputs, NULL, NULL) == CHUNKSCAN_INPUT);
  EXPECT(chunkscan_plan_prepare(NULL) == CHUNKSCAN_INPUT);
  EXPECT(chunkscan_load_pack("no such pack") == CHUNKSCAN_INPUT);
  EXPECT(chunkscan_load_pack(NULL) == CHUNKSCAN_INPUT);
}

/* A caller compiled against another version of the header. */
static void other_sizes(void) {
  Call call = make_call();
  struct {
    chunkscan_options known;
    int64_t later;
  } newer;
  chunkscan_options older;
  describe(&call);

  chunkscan_options_init(&newer.known, sizeof newer);
  EXPECT(newer.later == 0);
  newer.known.dt_softplus = 1;
  EXPECT(chunkscan_forward(&call.inputs, &call.outputs, &newer.known, NULL) == CHUNKSCAN_OK);
  EXPECT(largest_error(&call) < 1e-6);
  newer.later = 1;
  REFUSED(&call, &newer.known, CHUNKSCAN_INPUT, "[forward] options: expected fields of chunkscan");

  memset(&older, 0xff, sizeof older); /* beyond its size there is nothing of an older caller's */
  chunkscan_options_init(&older, offsetof(chunkscan_options, state_every));
  older.dt_softplus = 1;
  EXPECT(chunkscan_forward(&call.inputs, &call.outputs, &older, NULL) == CHUNKSCAN_OK);
  EXPECT(largest_error(&call) < 1e-6);

  call.inputs.size = offsetof(chunkscan_inputs, D);
  call.inputs.D.rank = 77;
  EXPECT(chunkscan_forward(&call.inputs, &call.outputs, NULL, NULL) == CHUNKSCAN_OK);
  call.inputs.size = 0;
  REFUSED(&call, NULL, CHUNKSCAN_INPUT, "[forward] inputs: expected size = sizeof of the struct");
}

/* For a GPU that need not be here. */
static void plans_for_an_architecture(void) {
  Call call = make_call();
  chunkscan_options options = softplus();
  chunkscan_plan* plan = NULL;
  size_t kernels = 77;
  describe(&call);
  EXPECT(chunkscan_plan_make(&call.inputs, &call.outputs, &options, &plan) == CHUNKSCAN_OK);
  EXPECT(chunkscan_write_pack((const chunkscan_plan* const*)&plan, 1, "no/such/folder", &kernels) ==
         CHUNKSCAN_INPUT);
  EXPECT(strstr(chunkscan_last_error(), "expected one of a cuda/ backend, got one of cpu") != NULL);
  EXPECT(chunkscan_write_pack(NULL, 0, "no/such/folder", NULL) == CHUNKSCAN_INPUT);
  EXPECT(chunkscan_write_pack(NULL, 1, "no/such/folder", NULL) == CHUNKSCAN_INPUT);
  EXPECT(kernels == 77);
  chunkscan_plan_destroy(plan);
  options.architecture = "sm_80";
  EXPECT(chunkscan_plan_make(&call.inputs, &call.outputs, &options, &plan) == CHUNKSCAN_OK);
  if (plan == NULL) return;
  EXPECT(strcmp(chunkscan_plan_backend(plan), "cuda/portable") == 0);
  chunkscan_plan_destroy(plan);
}

static void lists(void) {
  const int32_t count = chunkscan_backend_count();
  EXPECT(strlen(chunkscan_version()) >= 5);
  EXPECT(count >= 2);
  EXPECT(strcmp(chunkscan_backend_name(count - 1), "reference") == 0);
  EXPECT(strcmp(chunkscan_backend_reason(count - 1), "") == 0);
  EXPECT(chunkscan_backend_name(count) == NULL);
  EXPECT(chunkscan_backend_reason(-1) == NULL);
}

int main(void) {
  EXPECT(strcmp(chunkscan_last_error(), "") == 0);
  forward_gives_the_result();
  plan_runs();
  mistakes_are_sentences();
  other_sizes();
  plans_for_an_architecture();
  lists();
  if (failures == 0) printf("the C interface: all right\n");
  return failures == 0 ? 0 : 1;
}
