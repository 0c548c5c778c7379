# Compiler flags, each with its reason.
#
#   attn_common_flags   everything
#   attn_shipped_flags  what is shipped, on top of it

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF) # the same language on every compiler
set(CMAKE_EXPORT_COMPILE_COMMANDS ON) # for clangd and clang-tidy

# -O3: the kernels rely on full unrolling and inlining of small templates.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
# Checked builds keep assertions; -O1 keeps the sanitized sweep over all sizes within seconds.
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(attn_common_flags INTERFACE)
target_compile_options(attn_common_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  # GCC calls the length of an array a conversion when a template parameter of type int gives it; clang sees the same sources.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-sign-conversion>
  # GCC 12 warns of its own AVX-512 header (its bug 105593).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized -Wno-maybe-uninitialized>
  $<$<BOOL:${ATTN_WERROR}>:-Werror>
  # The kernels decide where multiply and add fuse (madd), so that one source gives the same bits in every build. Fast-math
  # is never on: xsimd's exponential is wrong under it, and -inf marks masked scores (a header refuses to compile with it).
  -ffp-contract=off
)

add_library(attn_shipped_flags INTERFACE)
target_link_libraries(attn_shipped_flags INTERFACE attn_common_flags)
target_compile_options(attn_shipped_flags INTERFACE
  -fno-exceptions # errors are Status values; in WebAssembly exceptions cost a call through JavaScript each
  -Wdouble-promotion # kernels stay in float32; tests and reference go to double all the time
  -fno-rtti       # nobody asks for a type's name, and the tables would be shipped
)

# Flags that change the instruction set or the memory model hold for every object of a build, tests and Catch2 included.
if(EMSCRIPTEN)
  add_compile_options(-msimd128) # 128-bit vectors: in every browser since 2023
  if(ATTN_RELAXED_SIMD)
    add_compile_options(-mrelaxed-simd) # fused multiply-add; a second binary, chosen where the engine has it
  endif()
  if(ATTN_THREADS)
    add_compile_options(-pthread) # shared memory and atomics
    # Growth of shared memory makes JavaScript's views stale; memory.ts makes a fresh view for every use.
    add_link_options(-pthread -Wno-pthreads-mem-growth)
  endif()
else()
  include(host_arch)
  if(ATTN_SANITIZE)
    add_compile_options(-fsanitize=${ATTN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${ATTN_SANITIZE})
  endif()
endif()

if(ATTN_RELAXED_SIMD)
  add_compile_definitions(ATTN_RELAXED_SIMD=1)
endif()
if(ATTN_THREADS)
  add_compile_definitions(ATTN_THREADS=1)
endif()
if(ATTN_ARCH_EMULATED)
  add_compile_definitions(ATTN_ARCH_EMULATED=1 XSIMD_WITH_EMULATED=1)
endif()
