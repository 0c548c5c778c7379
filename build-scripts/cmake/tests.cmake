# The C++ tests: one program, whose sources are the same for every build.
file(GLOB test_sources CONFIGURE_DEPENDS tests/cpp/*.cpp tests/cpp/support/*.cpp)

if(test_sources)
  add_executable(attn_tests ${test_sources})
  target_include_directories(attn_tests PRIVATE src tests/cpp)
  target_compile_options(attn_tests PRIVATE -O1) # half the compile time; what is tested, the library, keeps its own flags
  target_link_libraries(attn_tests PRIVATE attn_core attn_common_flags xsimd Catch2::Catch2WithMain)
  target_precompile_headers(attn_tests PRIVATE <catch2/catch_message.hpp> <catch2/catch_test_macros.hpp> <algorithm> <random> <string> <vector>)
  if(TARGET attn_reference)
    target_link_libraries(attn_tests PRIVATE attn_reference)
  endif()

  if(EMSCRIPTEN)
    # .cjs: package.json says that .js files are ES modules, and this program is a classic script.
    set_target_properties(attn_tests PROPERTIES SUFFIX .cjs)
    target_link_options(attn_tests PRIVATE
      -sENVIRONMENT=node,worker  # worker: the threads of the threaded builds
      -sALLOW_MEMORY_GROWTH      # long sequences
      -sSTACK_SIZE=1MB           # Catch2 formats on the stack
      -sEXIT_RUNTIME=1           # the program's exit code becomes Node's
      -sASSERTIONS=1             # a trap says why
    )
    if(ATTN_THREADS)
      # main() must not block the thread that starts the workers; the pool is there before main() runs.
      target_link_options(attn_tests PRIVATE -sPROXY_TO_PTHREAD -sPTHREAD_POOL_SIZE=8)
    endif()
  endif()
  add_test(NAME attn_tests COMMAND attn_tests)
endif()

# The build must fail under fast-math: -inf marks masked scores, and xsimd's exponential is wrong under it.
file(GLOB public_headers CONFIGURE_DEPENDS src/include/attn/attention.h)
if(public_headers)
  add_test(NAME refuses_fast_math
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -ffast-math -fsyntax-only -x c++ ${public_headers}
      -I ${PROJECT_SOURCE_DIR}/src/include)
  set_tests_properties(refuses_fast_math PROPERTIES PASS_REGULAR_EXPRESSION "fast-math|FAST_MATH")
endif()
