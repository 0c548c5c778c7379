# The Embind module that the package ships: attention.mjs (JavaScript glue) and attention.wasm.
# The build script copies them to dist/; the glue of the baseline and of the relaxed build must be the same bytes.
file(GLOB binding_sources CONFIGURE_DEPENDS src/bindings/*.cpp)

if(binding_sources)
  add_executable(attn_wasm ${binding_sources})
  set_target_properties(attn_wasm PROPERTIES OUTPUT_NAME attention SUFFIX .mjs)
  target_include_directories(attn_wasm PRIVATE src)
  target_link_libraries(attn_wasm PRIVATE attn_core attn_shipped_flags)
  # Embind without -fno-rtti's missing type names: unbound types would be named in errors otherwise.
  target_compile_definitions(attn_wasm PRIVATE EMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)

  target_link_options(attn_wasm PRIVATE
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
  )

  if(ATTN_THREADS)
    include(wasm_threads)
  else()
    target_link_options(attn_wasm PRIVATE
      # No Node code is emitted, so that bundlers for browsers see no Node module and no top-level await; with the compiled
      # module handed in, the same file runs in Node, Deno, Bun and workers as well.
      -sENVIRONMENT=web,worker
      # The glue never looks for its wasm: without this, bundlers would find a new URL("attention.wasm", import.meta.url) in it.
      -sUSE_ES6_IMPORT_META=0
    )
  endif()
endif()
