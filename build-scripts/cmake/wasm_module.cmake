# The Embind module that the package ships, JavaScript glue and WebAssembly. The build script copies them to dist/; the glue of the
# baseline and of the relaxed build must be the same bytes, and the WebAssembly of two glues of one build as well.
#
#   attn_wasm           one thread: attention.mjs; with threads: glue-threads-web.js
#   attn_wasm_node      with threads only: glue-threads-node.js
file(GLOB binding_sources CONFIGURE_DEPENDS src/bindings/*.cpp)

if(binding_sources)
  add_library(attn_bindings OBJECT ${binding_sources})
  target_include_directories(attn_bindings PRIVATE src)
  target_link_libraries(attn_bindings PRIVATE attn_core attn_shipped_flags)
  target_precompile_headers(attn_bindings PRIVATE <emscripten/bind.h>) # seconds to read, and every binding needs it
  # Embind names unbound types in its errors, which needs RTTI unless it is told not to.
  target_compile_definitions(attn_bindings PRIVATE EMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)
endif()

function(attn_add_module target output suffix)
  add_executable(${target} $<TARGET_OBJECTS:attn_bindings>)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output} SUFFIX ${suffix} LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE attn_core)
  target_link_options(${target} PRIVATE
    -lembind
    # Said again for the linker: it chooses the variant of Embind's library, whose type identities must agree with ours.
    -fno-rtti
    # An ES module that exports a function: nothing runs at import, every call gives an instance of its own.
    -sMODULARIZE -sEXPORT_ES6 -sEXPORT_NAME=createAttentionModule
    # No eval and no new Function: works under script-src 'self' 'wasm-unsafe-eval'.
    -sDYNAMIC_EXECUTION=0
    # Starts small (at most 4 MiB after loading) and grows as inputs need it, up to all that 32 bits address.
    -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=2MB -sMAXIMUM_MEMORY=4GB
    # Out of memory is a null pointer that becomes an error, not an abort that ends the instance.
    -sABORTING_MALLOC=0
    # Kernels keep their tiles in caller-provided scratch memory; what is left fits here with a wide margin.
    -sSTACK_SIZE=256KB
    # No files, no environment, no command line.
    -sFILESYSTEM=0
    # No main(): the runtime stays alive, and no code for ending it is kept.
    -sEXIT_RUNTIME=0
    # Nothing of Emscripten's own printing or debugging in what is shipped.
    -sASSERTIONS=0
    # Pointers and sizes are plain numbers on both sides; no BigInt crosses.
    -sWASM_BIGINT=0
    # All that the loader hands in: it fetches, validates and compiles by itself and passes the compiled module; nothing is
    # printed, and an abort becomes an error.
    -sINCOMING_MODULE_JS_API=instantiateWasm,onAbort,print,printErr
    # The only Emscripten object the loader needs: memory.ts makes its views from it.
    -sEXPORTED_RUNTIME_METHODS=wasmMemory
    # Engines that have WebAssembly SIMD; older syntax and workarounds would be dead weight.
    -sMIN_CHROME_VERSION=91 -sMIN_FIREFOX_VERSION=89 -sMIN_SAFARI_VERSION=160400
    ${ARGN}
  )
endfunction()

if(binding_sources AND NOT ATTN_THREADS)
  attn_add_module(attn_wasm attention .mjs
    # No Node code is emitted, so that bundlers for browsers see no Node module and no top-level await; with the compiled
    # module handed in, the same file runs in Node, Deno, Bun and workers as well.
    -sENVIRONMENT=web,worker
    # The glue never looks for its wasm: without this, bundlers would find a new URL("attention.wasm", import.meta.url) in it.
    -sUSE_ES6_IMPORT_META=0
  )
elseif(binding_sources)
  # A thread is a worker that loads the glue again, in Node through node:worker_threads: a glue of its own, so that the one for
  # browsers mentions no Node module. Workers are started when threads are asked for (no PTHREAD_POOL_SIZE).
  # PThread: terminateAllThreads() ends the workers when an instance is disposed.
  set(threads_exports -sEXPORTED_RUNTIME_METHODS=wasmMemory,PThread)
  attn_add_module(attn_wasm glue-threads-web .js -sENVIRONMENT=web,worker ${threads_exports})
  attn_add_module(attn_wasm_node glue-threads-node .js -sENVIRONMENT=node ${threads_exports}
    # Nothing listens on `process`: an application's errors and exit code are its own.
    -sNODEJS_CATCH_EXIT=0 -sNODEJS_CATCH_REJECTION=0
  )
  add_dependencies(attn_wasm attn_wasm_node)
endif()
