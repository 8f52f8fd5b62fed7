// Threads and processes around the library: plans that run at the same time, and after a fork.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;

class Processes : public Conformance {};

CaseSpec spec_of(std::int64_t h, std::int64_t p, std::uint64_t seed) {
  CaseSpec spec;
  spec.b = 2;
  spec.l = 200;
  spec.h = h;
  spec.p = p;
  spec.seed = seed;
  spec.final_states = DType::kF32;
  return spec;
}

TEST_P(Processes, TwoThreadsRunTwoPlans) {
  struct Work {
    Case want, got;
    int wrong = 0;
  };
  const CaseSpec specs[] = {spec_of(4, 24, 1), spec_of(3, 40, 2)};
  Work works[] = {{make(specs[0]), make(specs[0])}, {make(specs[1]), make(specs[1])}};
  for (Work& work : works) run(work.want);
  std::vector<std::thread> threads;
  for (Work& work : works) {
    threads.emplace_back([this, &work] {
      Case& c = work.got;
      const auto call_often = [&](auto&& call) {
        for (int i = 0; i < 10; ++i) {
          c.poison_outputs();
          call();
          work.wrong += !testkit::same_bits(c.outputs.y, work.want.outputs.y) ||
                        !testkit::same_bits(c.outputs.final_states, work.want.outputs.final_states);
        }
      };
      if (on_gpu()) {
        const testkit::DeviceCall copies(c.inputs, c.outputs);
        const testkit::PreparedDeviceCall prepared(copies, with(c.options));
        call_often([&] {
          copies.upload();
          prepared.run();
          copies.download();
        });
      } else {
        const Plan plan = make_plan(c.inputs, c.outputs, with(c.options));
        prepare(plan);
        const testkit::Block workspace(plan.workspace_bytes());
        call_often([&] { chunkscan::run(plan, c.inputs, c.outputs, workspace.data()); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Work& work : works) EXPECT_EQ(work.wrong, 0);
}

// GNU OpenMP's threads do not survive a fork; a region that waits for them would never end.
TEST_P(Processes, AForkedChildRuns) {
  if (on_gpu()) GTEST_SKIP() << "CUDA does not work in a forked child of a process that uses it";
  Case want = make(spec_of(4, 24, 1)), got = make(spec_of(4, 24, 1));
  want.options.threads = got.options.threads = 2;
  run(want);  // the parent's threads exist now
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    run(got);
    const bool right = default_threads() == 1 && testkit::same_bits(got.outputs.y, want.outputs.y);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

INSTANTIATE_TEST_SUITE_P(, Processes, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
