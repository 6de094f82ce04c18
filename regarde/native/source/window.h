// A language model that looks at its own last states (Daniluk et al. 2017): query t of T against the `window` keys
// before its own, which is key S - T + t. Work and memory grow with T times the window, and the tanh of the additive
// score is computed again in the backward pass (attention.h).
#pragma once
#include "attention.h"

namespace VARIANT {

// What query t of sentence b may look at, and where its weights and gradients lie.
template <class Real> struct LookBack {
  const Window &a;
  const int64_t query, first, count;  // the query's number; its first key, and how many there are
  const Source<Real> near;

  LookBack(const Window &a, int64_t b, int64_t t, const uint8_t *all)
      : a(a), query(b * a.T + t), first(from(a, b, t)), count(b * a.S + a.S - a.T + t - first),
        near(static_cast<const Real *>(a.keys) + first * a.A, static_cast<const Real *>(a.values) + first * a.C,
             static_cast<const Real *>(a.v), all, count, a.A, a.C) {}

  static int64_t from(const Window &a, int64_t b, int64_t t) {
    const int64_t own = a.S - a.T + t;
    return b * a.S + (own > a.window ? own - a.window : 0);
  }
  template <class Pointer> static Real *row(Pointer *tensor, int64_t number, int64_t size) {
    return static_cast<Real *>(const_cast<void *>(static_cast<const void *>(tensor))) + number * size;
  }

  void forward() const {
    near.attend(row(a.queries, query, a.A), row(a.weights, query, a.window), row(a.contexts, query, a.C));
  }

  void backward(Real *d_scores, Real *d_v) const {
    const Real *q = row(a.queries, query, a.A), *weights = row(a.weights, query, a.window);
    const Real *d_context = row(a.d_contexts, query, a.C);
    Real *d_keys = row(a.d_keys, first, a.A), *d_values = row(a.d_values, first, a.C);
    near.attend_backward(q, weights, d_context, nullptr, d_scores, row(a.d_queries, query, a.A), d_keys, d_v);
    for (int64_t s = 0; s < count; s++) {
      add_scaled(weights[s], d_context, a.C, d_values + s * a.C);
      if (!a.v) add_scaled(d_scores[s], q, a.A, d_keys + s * a.A);
    }
  }

  static void add_scaled(Real factor, const Real *x, int64_t size, Real *y) {
    FOR_LANES(Real, j, n, size) store<Real>(y + j, load<Real>(y + j, n) + factor * load<Real>(x + j, n), n);
  }
};

template <class Real, class Body> void each_query(const Window &a, Body body) {
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t thread) {
    Memory<uint8_t> all(a.window);
    std::memset(all.first, 1, a.window);
    for (int64_t b = first; b < first + count; b++)
      for (int64_t t = 0; t < a.T; t++) body(LookBack<Real>(a, b, t, all.first), thread);
  });
}

template <class Real> void window_forward(const Window &a) {
  each_query<Real>(a, [](const LookBack<Real> &one, int64_t) { one.forward(); });
}

template <class Real> void window_backward(const Window &a) {
  Memory<Real> d_scores(a.threads * a.window);
  each_query<Real>(a, [&](const LookBack<Real> &one, int64_t thread) {
    one.backward(d_scores.first + thread * a.window, static_cast<Real *>(a.d_v) + thread * a.A);
  });
}

}  // namespace VARIANT
