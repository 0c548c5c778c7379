// attn_bench [names]                                the kernels, alone, in L1: those whose names contain one of these
// attn_bench workload <sizes> <budget ms> <most>    one workload; prints its times and its error as JSON (see native-program.mjs)

#include <cstring>

#include "timing.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "workload") == 0) return attn::bench::run_workload(argv + 2, argc - 2);
  return attn::bench::run_kernels(argv + 1, argc - 1);
}
