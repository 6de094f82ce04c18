// Vectors of reals, by the vector extension of GCC and Clang: one source for every instruction set. What the compiler
// makes of it is decided by the file that includes this one (portable.cpp, avx2.cpp), which also names the namespace.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#define INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

namespace VARIANT {

template <class Real> struct Lanes;
template <> struct Lanes<float> {
  static constexpr int count = 8;
  typedef float Vector __attribute__((vector_size(32)));
};
template <> struct Lanes<double> {
  static constexpr int count = 4;
  typedef double Vector __attribute__((vector_size(32)));
};
template <class Real> using Vector = typename Lanes<Real>::Vector;
typedef int32_t Integers __attribute__((vector_size(32)));
typedef uint32_t Naturals __attribute__((vector_size(32)));

template <class Real> INLINE Vector<Real> load(const Real *from) {
  Vector<Real> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class Real> INLINE void store(Real *to, Vector<Real> v) { std::memcpy(to, &v, sizeof v); }

// The first `count` lanes only; the others are read as zero and not written.
template <class Real> INLINE Vector<Real> load(const Real *from, int64_t count) {
  if (count >= Lanes<Real>::count) return load<Real>(from);
#if defined(WITH_AVX2)
  if constexpr (sizeof(Real) == sizeof(float)) {
    const Integers there = Integers{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(count);
    return (Vector<Real>)_mm256_maskload_ps(reinterpret_cast<const float *>(from), (__m256i)there);
  }
#endif
  Vector<Real> v = {};
  for (int64_t i = 0; i < count; i++) v[i] = from[i];
  return v;
}
template <class Real> INLINE void store(Real *to, Vector<Real> v, int64_t count) {
  if (count >= Lanes<Real>::count) return store<Real>(to, v);
  int64_t i = 0;
  if (count >= Lanes<Real>::count / 2) std::memcpy(to, &v, sizeof v / 2), i = Lanes<Real>::count / 2;
  for (; i < count; i++) to[i] = v[i];
}

template <class Real> INLINE Vector<Real> all(Real x) { return x - Vector<Real>{}; }
template <class V> INLINE V smaller(V a, V b) { return a < b ? a : b; }
template <class V> INLINE V larger(V a, V b) { return a > b ? a : b; }
#if defined(WITH_AVX2)  // one instruction each, which the compiler does not find
INLINE Vector<float> smaller(Vector<float> a, Vector<float> b) { return (Vector<float>)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE Vector<float> larger(Vector<float> a, Vector<float> b) { return (Vector<float>)_mm256_max_ps((__m256)a, (__m256)b); }
#endif

// Halves first: each addition waits for the one before it, and so there are fewer to wait for.
template <class Real> INLINE Real sum(Vector<Real> v) {
  constexpr int half = Lanes<Real>::count / 2;
  typedef Real Half __attribute__((vector_size(16)));
  Half low, high;
  std::memcpy(&low, &v, sizeof low);
  std::memcpy(&high, reinterpret_cast<const char *>(&v) + sizeof low, sizeof high);
  low += high;
  if (half == 2) return low[0] + low[1];
  return (low[0] + low[2 % half]) + (low[1] + low[3 % half]);
}
template <class Real> INLINE Real largest(Vector<Real> v) {
  Real found = v[0];
  UNROLL for (int i = 1; i < Lanes<Real>::count; i++) found = found > v[i] ? found : v[i];
  return found;
}

// Four vectors that take the same way side by side: a chain of operations waits for each, and three others fill the time.
struct Four {
  Vector<float> v[4];
};
#define SIDE_BY_SIDE(expression)                      \
  Four out;                                           \
  UNROLL for (int i = 0; i < 4; i++) out.v[i] = expression; \
  return out;
INLINE Four four(const float *from) { SIDE_BY_SIDE(load<float>(from + i * Lanes<float>::count)) }
INLINE Four operator+(Four a, Four b) { SIDE_BY_SIDE(a.v[i] + b.v[i]) }
INLINE Four operator-(Four a, Four b) { SIDE_BY_SIDE(a.v[i] - b.v[i]) }
INLINE Four operator*(Four a, Four b) { SIDE_BY_SIDE(a.v[i] * b.v[i]) }
INLINE Four operator/(Four a, Four b) { SIDE_BY_SIDE(a.v[i] / b.v[i]) }
INLINE Four operator+(Four a, float b) { SIDE_BY_SIDE(a.v[i] + b) }
INLINE Four operator-(Four a, float b) { SIDE_BY_SIDE(a.v[i] - b) }
INLINE Four operator*(Four a, float b) { SIDE_BY_SIDE(a.v[i] * b) }

// Within bounds; what is not a number comes through: of a comparison with it, the second is taken.
INLINE Vector<float> within(float low, float high, Vector<float> x) { return smaller(all(high), larger(all(low), x)); }
INLINE Four within(float low, float high, Four x) { SIDE_BY_SIDE(within(low, high, x.v[i])) }
// 2^n, where n lies in the lowest bits
INLINE Vector<float> two_to(Vector<float> n) { return (Vector<float>)(((Integers)n << 23) + (127 << 23)); }
INLINE Four two_to(Four n) { SIDE_BY_SIDE(two_to(n.v[i])) }
#undef SIDE_BY_SIDE

// x = n ln 2 + r with |r| <= ln 2 / 2:  e^x = 2^n e^r,  and e^r - 1 by its series, whose first term left out is r^7/7!.
// e^x - 1 = 2^n (e^r - 1) + (2^n - 1) keeps every digit near zero, where n = 0.
template <class V> struct Power {
  V scale;  // 2^n
  V rest;   // e^r - 1
};
template <class V> INLINE Power<V> power(V x) {
  const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, which then lies in the lowest bits
  const V shifted = x * 1.44269504f + shift;
  const V n = shifted - shift;
  V r = x - n * 0.693145752f;  // ln 2 in two parts, the first with few digits so that the product is exact
  r = r - n * 1.42860677e-6f;
  V tail = r * (1.0f / 720) + 1.0f / 120;
  tail = tail * r + 1.0f / 24;
  tail = tail * r + 1.0f / 6;
  tail = tail * r + 0.5f;
  return {two_to(shifted), tail * (r * r) + r};
}

template <class V> INLINE V exponential(V x) {
  const Power<V> p = power(within(-87.0f, 88.0f, x));
  return p.scale * p.rest + p.scale;
}
template <class V> INLINE V tangent(V x) {  // tanh x = (e^2x - 1) / (e^2x + 1)
  const Power<V> p = power(within(-20.0f, 20.0f, x + x));
  const V less_one = p.scale * p.rest + (p.scale - 1.0f);
  return less_one / (less_one + 2.0f);
}

INLINE Vector<double> exponential(Vector<double> x) {
  for (int i = 0; i < Lanes<double>::count; i++) x[i] = std::exp(x[i]);
  return x;
}
INLINE Vector<double> tangent(Vector<double> x) {
  for (int i = 0; i < Lanes<double>::count; i++) x[i] = std::tanh(x[i]);
  return x;
}

template <class V> INLINE V sigmoid(V x) { return 1 / (1 + exponential(-x)); }
// sigmoid(gate) tanh(x), by one division
INLINE Vector<float> gated(Vector<float> gate, Vector<float> x) {
  const Power<Vector<float>> p = power(within(-20.0f, 20.0f, x + x));
  const Vector<float> less_one = p.scale * p.rest + (p.scale - 1.0f);
  return less_one / ((less_one + 2.0f) * (1.0f + exponential(-gate)));
}

// for (j, n) in pieces of a row: j the place, n how many of the lanes count.
#define FOR_LANES(Real, j, n, size)                                                                             \
  for (int64_t j = 0, n = (size); j < (size); j += Lanes<Real>::count, n = (size) - j)

}  // namespace VARIANT
