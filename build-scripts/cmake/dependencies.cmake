# xsimd and Catch2: a package on this machine, else what the set-up fetched (FETCHCONTENT_SOURCE_DIR_* from
# build/tools.cmake), else the upstream archive pinned by its hash, for people with open internet.
include(FetchContent)

# Only the files are wanted, not the projects' own build (their targets, tests and options): a SOURCE_SUBDIR without a
# CMakeLists.txt makes FetchContent leave it at that.
FetchContent_Declare(xsimd
  URL https://github.com/xtensor-stack/xsimd/archive/refs/tags/13.2.0.tar.gz
  URL_HASH SHA256=edd8cd3d548c185adc70321c53c36df41abe64c1fe2c67bc6d93c3ecda82447a
  DOWNLOAD_EXTRACT_TIMESTAMP OFF
  SOURCE_SUBDIR files-only
)
FetchContent_Declare(Catch2
  URL https://github.com/catchorg/Catch2/archive/refs/tags/v3.7.1.tar.gz
  URL_HASH SHA256=c991b247a1a0d7bb9c39aa35faf0fe9e19764213f28ffba3109388e62ee0269c
  DOWNLOAD_EXTRACT_TIMESTAMP OFF
  SOURCE_SUBDIR files-only
)

# ---- xsimd: headers only ----
if(NOT FETCHCONTENT_SOURCE_DIR_XSIMD AND NOT EMSCRIPTEN)
  find_package(xsimd 13 QUIET) # emcc does not search the host's folders, so only for the host
endif()
if(NOT TARGET xsimd)
  FetchContent_MakeAvailable(xsimd)
  add_library(xsimd INTERFACE)
  # SYSTEM: warnings in other people's headers are not ours to mend.
  target_include_directories(xsimd SYSTEM INTERFACE ${xsimd_SOURCE_DIR}/include)
endif()

# ---- Catch2: compiled here, so that emcc and the sanitizers see the same source ----
if(ATTN_BUILD_TESTS)
  if(NOT FETCHCONTENT_SOURCE_DIR_CATCH2 AND NOT EMSCRIPTEN AND NOT ATTN_SANITIZE)
    find_package(Catch2 3.7 QUIET)
  endif()
  if(NOT TARGET Catch2::Catch2WithMain)
    FetchContent_MakeAvailable(Catch2)
    add_library(attn_catch2 STATIC ${catch2_SOURCE_DIR}/extras/catch_amalgamated.cpp)
    # Its <catch2/...> headers are those of src/; the amalgamated source is the same code in one file, which compiles faster.
    file(WRITE ${PROJECT_BINARY_DIR}/catch2/catch2/catch_user_config.hpp "#pragma once\n")
    target_include_directories(attn_catch2 SYSTEM PUBLIC ${catch2_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/catch2)
    target_compile_options(attn_catch2 PRIVATE -O1 -w) # quick to compile; its own speed does not matter
    if(EMSCRIPTEN)
      target_compile_options(attn_catch2 PUBLIC -fexceptions) # a failed REQUIRE is an exception
      target_link_options(attn_catch2 PUBLIC -fexceptions)
    endif()
    add_library(Catch2::Catch2WithMain ALIAS attn_catch2)
  endif()
endif()
