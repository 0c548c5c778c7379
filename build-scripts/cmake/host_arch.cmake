# Which instructions a host build may use.
include(CheckCXXSourceRuns)

if(ATTN_ARCH_EMULATED)
  # Plain C++: nothing to choose.
elseif(NOT ATTN_NATIVE_ARCH STREQUAL "portable")
  # For benchmarks on this very machine.
  add_compile_options(-march=${ATTN_NATIVE_ARCH})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # AVX2 and FMA where the machine has them: the common denominator of x86 since 2015. Without the check a test run on an
  # older machine would die of an illegal instruction.
  check_cxx_source_runs([[
    int main() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 0 : 1; }
  ]] ATTN_HOST_HAS_AVX2)
  if(ATTN_HOST_HAS_AVX2)
    add_compile_options(-march=x86-64-v3)
  endif()
endif()
