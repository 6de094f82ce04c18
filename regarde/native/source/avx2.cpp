// The kernels for x86 processors with AVX2 and FMA (Intel since 2013, AMD since 2015), in single precision.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define VARIANT avx2
#define WITH_AVX2
#include "kernels.h"

KERNELS(avx2, f32, float)
const Table avx2_table = TABLE;
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
