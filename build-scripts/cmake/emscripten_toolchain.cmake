# Emscripten's own toolchain file, wherever Emscripten is: what the set-up found, else emcc on PATH.
include(${CMAKE_CURRENT_LIST_DIR}/../../build/tools.cmake OPTIONAL)

if(NOT ATTN_EMSCRIPTEN_ROOT)
  find_program(emcc_on_path emcc NO_CACHE)
  if(NOT emcc_on_path)
    message(FATAL_ERROR "Emscripten is not set up: run 'npm run setup', or put emcc on PATH.")
  endif()
  file(REAL_PATH ${emcc_on_path} emcc_on_path)
  get_filename_component(ATTN_EMSCRIPTEN_ROOT ${emcc_on_path} DIRECTORY)
endif()

include(${ATTN_EMSCRIPTEN_ROOT}/cmake/Modules/Platform/Emscripten.cmake)

# CMake looks at this path again when Emscripten's file is not the toolchain file itself.
list(APPEND CMAKE_MODULE_PATH ${ATTN_EMSCRIPTEN_ROOT}/cmake/Modules)

# Node 20 has relaxed SIMD behind a flag; newer ones have it by default.
execute_process(COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} --experimental-wasm-relaxed-simd -e 0
  RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
if(refused EQUAL 0)
  list(APPEND CMAKE_CROSSCOMPILING_EMULATOR --experimental-wasm-relaxed-simd)
endif()
