// A decoder that attends before each step of its cell (models/bahdanau.py):   s_{t-1} -> a_t -> c_t -> s_t
#pragma once
#include "attention.h"
#include "cells.h"

namespace VARIANT {

template <class Real> struct BeforeSteps {
  const Before &a;
  int64_t first, count;

  Rows<Real> of(const void *tensor, int64_t N, int64_t t) const { return at<Real>(tensor, first, a.T, N, t); }
  CellStep<Real> step(int64_t t) const {
    const int64_t H = a.H, G = gates_of(a.kind) * H;
    CellStep<Real> s;
    s.gates = of(a.gates, G, t);
    s.base = reading(s.gates);  // the context's share is there already
    s.before = reading(t ? of(a.outputs, H, t - 1) : at<Real>(a.start, first, 1, H, 0));
    s.carry_before = reading(t ? of(a.carry, H, t - 1) : at<Real>(a.start_carry, first, 1, H, 0));
    s.after = of(a.outputs, H, t);
    s.carry = of(a.carry, H, t);
    s.reset = of(a.reset, H, t);
    s.mask = nullptr;
    s.mask_apart = 0;
    return s;
  }
};

template <class Real> void before_forward(const Before &a) {
  const int64_t H = a.H, A = a.A, C = a.C, G = gates_of(a.kind) * H;
  const int64_t context_size = Packed<Real>::size(C, G);
  Memory<Real> memory(CellWeights<Real>::size(a.kind, H) + context_size + Packed<Real>::size(H, A));
  CellWeights<Real> weights;
  Packed<Real> W_context, W_query;
  W_context.pack(static_cast<const Real *>(a.W_context), C, G, 1, C, memory.first, a.threads);
  Real *rest = weights.pack(a.kind, H, a.U_gates, a.U, false, memory.first + context_size, a.threads);
  if (a.W_query) W_query.pack(static_cast<const Real *>(a.W_query), H, A, 1, H, rest, a.threads);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t) {
    BeforeSteps<Real> steps{a, first, count};
    for (int64_t t = 0; t < a.T; t++) {
      CellStep<Real> step = steps.step(t);
      Rows<Real> queries = steps.of(a.queries, A, t), contexts = steps.of(a.contexts, C, t);
      if (a.W_query) multiply<Real>(count, step.before, W_query, {static_cast<const Real *>(a.b_query), 0}, queries);
      for (int64_t row = 0; row < count; row++) {
        const Real *q = a.W_query ? queries[row] : step.before[row];
        Source<Real>(a, first + row).attend(q, steps.of(a.weights, a.S, t)[row], contexts[row]);
      }
      multiply<Real>(count, reading(contexts), W_context, reading(steps.of(a.shares, G, t)), step.gates);
      cell_forward(a.kind, count, H, weights, step);
    }
  });
}

template <class Real> void before_backward(const Before &a) {
  const int64_t H = a.H, A = a.A, C = a.C, S = a.S, G = gates_of(a.kind) * H;
  const int64_t context_size = Packed<Real>::size(G, C);
  Memory<Real> memory(CellWeights<Real>::size(a.kind, H) + context_size + Packed<Real>::size(A, H)), scratch(a.B * H);
  CellWeights<Real> weights;
  Packed<Real> W_context, W_query;
  W_context.pack(static_cast<const Real *>(a.W_context), G, C, C, 1, memory.first, a.threads);
  Real *rest = weights.pack(a.kind, H, a.U_gates, a.U, true, memory.first + context_size, a.threads);
  if (a.W_query) W_query.pack(static_cast<const Real *>(a.W_query), A, H, H, 1, rest, a.threads);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t thread) {
    BeforeSteps<Real> steps{a, first, count};
    Rows<Real> d_state = at<Real>(a.d_state, first, 1, H, 0), d_carry = at<Real>(a.d_carry, first, 1, H, 0);
    for (int64_t t = a.T - 1; t >= 0; t--) {
      CellStep<Real> step = steps.step(t);
      Rows<Real> given = steps.of(a.d_outputs, H, t), d_gates = steps.of(a.d_gates, G, t);
      for (int64_t row = 0; row < count; row++) add<Real>(d_state[row], given[row], H);
      cell_backward(a.kind, count, H, weights, step, d_state, d_carry, d_gates, at<Real>(scratch.first, first, 1, H, 0));
      Rows<Real> d_contexts = steps.of(a.d_all_contexts, C, t), d_queries = steps.of(a.d_queries, A, t);
      multiply<Real>(count, reading(d_gates), W_context, reading(steps.of(a.d_contexts, C, t)), d_contexts);
      for (int64_t row = 0; row < count; row++) {
        const Real *q = a.W_query ? steps.of(a.queries, A, t)[row] : step.before[row];
        Real *d_keys = a.v ? static_cast<Real *>(a.d_keys) + (first + row) * S * A : nullptr;
        Source<Real>(a, first + row)
            .attend_backward(q, steps.of(a.weights, S, t)[row], d_contexts[row],
                             a.d_weights ? steps.of(a.d_weights, S, t)[row] : nullptr, steps.of(a.d_scores, S, t)[row],
                             d_queries[row], d_keys, a.v ? static_cast<Real *>(a.d_v) + thread * A : nullptr);
        if (!a.W_query) add<Real>(d_state[row], d_queries[row], H);
      }
      if (a.W_query) multiply<Real>(count, reading(d_queries), W_query, reading(d_state), d_state);
    }
  });
}

}  // namespace VARIANT
