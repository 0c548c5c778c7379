#pragma once

// The one place that knows which instruction set the kernels are compiled for, and where xsimd does not say what we need.

#if defined(ATTN_ARCH_EMULATED) && !defined(XSIMD_WITH_EMULATED)
#define XSIMD_WITH_EMULATED 1
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

/// Stands before an inner loop of a matrix kernel. Unrolled, the compilers (LLVM and then V8) move all loads of all steps to the front and
/// spill the sums: measured 29 GFLOP/s in place of 53. One step of 4 x 2 vectors fits the 16 registers of x86-64 as it is.
#if defined(__clang__)
#define ATTN_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define ATTN_NO_UNROLL
#endif

/// Marks a kernel: a function of its own, so that what a compiler makes of it does not depend on its callers. (Binaryen may still put one with a
/// single caller into it; measured, that makes no difference.)
#define ATTN_KERNEL [[gnu::noinline]]

namespace attn::kernels {

#if defined(ATTN_ARCH_EMULATED)
/// Four lanes in plain C++: what WASM SIMD does, where sanitizers and debuggers see it.
using DefaultArch = xsimd::emulated<128>;
#else
using DefaultArch = xsimd::default_arch;
#endif

template <class Arch>
using Vec = xsimd::batch<float, Arch>;
template <class Arch>
using IntVec = xsimd::batch<std::int32_t, Arch>;

template <class Arch>
inline constexpr int kLanes = static_cast<int>(Vec<Arch>::size);

/// Width of the panels of queries and outputs that the matrix kernels work on: two vectors.
template <class Arch>
inline constexpr int kPanel = 2 * kLanes<Arch>;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

#if defined(__wasm_simd128__)
template <class Arch>
inline constexpr bool kIsWasm = std::is_same_v<Arch, xsimd::wasm>;
#else
template <class Arch>
inline constexpr bool kIsWasm = false;
#endif

template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> load(const float* p) {
  return Vec<Arch>::load_unaligned(p);
}

template <class Arch>
[[gnu::always_inline]] inline void store(float* p, Vec<Arch> x) {
  x.store_unaligned(p);
}

/// All lanes = *p (v128.load32_splat).
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> load_splat(const float* p) {
  return Vec<Arch>::broadcast(*p);
}

/// The same bits, read as another type.
template <class Arch>
[[gnu::always_inline]] inline IntVec<Arch> as_int(Vec<Arch> x) {
  return xsimd::bitwise_cast<std::int32_t>(x);
}
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> as_float(IntVec<Arch> x) {
  return xsimd::bitwise_cast<float>(x);
}

/// The bits of a constant, for loop_constant.
consteval std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Constants of loops, in memory. Not const, so that no compiler puts the value itself in the place of a load.
template <std::uint32_t Bits>
inline std::uint32_t constant_in_memory = Bits;

/// All lanes = the float with these bits: for constants of an inner loop, which are to be made before it. V8 since 2024 writes a v128.const anew
/// at each of its uses, three instructions, and what was loaded it keeps: the softmax took 2.3 times as long (Node 24).
template <class Arch, std::uint32_t Bits>
[[gnu::always_inline]] inline Vec<Arch> loop_constant() {
  if constexpr (kIsWasm<Arch>) {
    return as_float<Arch>(IntVec<Arch>(static_cast<std::int32_t>(constant_in_memory<Bits>)));
  } else {
    return Vec<Arch>(std::bit_cast<float>(Bits));
  }
}

/// a * b + c: the one place where a fused multiply-add takes over, if there is one (relaxed SIMD, FMA3, NEON).
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> madd(Vec<Arch> a, Vec<Arch> b, Vec<Arch> c) {
#if defined(ATTN_RELAXED_SIMD)
  if constexpr (kIsWasm<Arch>) return Vec<Arch>(wasm_f32x4_relaxed_madd(a, b, c));
#endif
#if (defined(__FMA__) || defined(__aarch64__)) && !defined(ATTN_ARCH_EMULATED)
  return xsimd::fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// c - a * b, fused like `madd`.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> nmadd(Vec<Arch> a, Vec<Arch> b, Vec<Arch> c) {
#if defined(ATTN_RELAXED_SIMD)
  if constexpr (kIsWasm<Arch>) return Vec<Arch>(wasm_f32x4_relaxed_nmadd(a, b, c));
#endif
#if (defined(__FMA__) || defined(__aarch64__)) && !defined(ATTN_ARCH_EMULATED)
  return xsimd::fnma(a, b, c);
#else
  return c - a * b;
#endif
}

/// max(x, bound) that keeps a NaN in x. Implementations differ: wasm's pmax(x, bound) keeps it, x86's maxps(x, bound) drops it.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> max_keep_nan(Vec<Arch> x, Vec<Arch> bound) {
#if defined(__wasm_simd128__)
  if constexpr (kIsWasm<Arch>) return Vec<Arch>(wasm_f32x4_pmax(x, bound));
#endif
  return xsimd::select(x < bound, bound, x);
}

/// Running maximum. What it does with NaN does not matter: a NaN score makes its weight NaN, whatever the maximum is.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> max_any_nan(Vec<Arch> a, Vec<Arch> b) {
  return xsimd::max(a, b);
}

}  // namespace attn::kernels
