// A cell over a whole sentence that multiplies its inputs too (layers/cells.py, read): for small cells, whose matrices stay
// in the cache next to the processor from step to step. One product of [x_t; h_{t-1}] is then faster than one of all x
// and another of h, and a step's rows lie together.
#pragma once
#include "cells.h"
#include "parallel.h"

namespace VARIANT {

template <class Real> struct LayerSteps {
  const Layer &a;
  int64_t first;

  Rows<Real> of(const void *tensor, int64_t N, int64_t t) const {
    return {static_cast<Real *>(const_cast<void *>(tensor)) + (t * a.B + first) * N, N};
  }
  Rows<Real> joined(int64_t t) const { return of(a.joined, a.I + a.H, t); }
  CellStep<Real> step(int64_t t) const {
    const int64_t H = a.H;
    CellStep<Real> s{};
    s.gates = of(a.gates, gates_of(a.kind) * H, t);
    s.base = reading(s.gates);
    s.before = reading(joined(t).from(a.I));
    s.carry_before = reading(t ? of(a.carry, H, t - 1) : of(a.start_carry, H, 0));
    s.after = of(a.outputs, H, t);
    s.carry = of(a.carry, H, t);
    s.mask = a.mask ? a.mask + t * a.B + first : nullptr;
    s.mask_apart = 1;
    return s;
  }
};

template <class Real> void layer_forward(const Layer &a) {
  const int64_t H = a.H, K = a.I + H, G = gates_of(a.kind) * H;
  Memory<Real> memory(Packed<Real>::size(K, G));
  Packed<Real> WU;
  WU.pack(static_cast<const Real *>(a.WU), K, G, 1, K, memory.first);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t) {
    LayerSteps<Real> steps{a, first};
    for (int64_t t = 0; t < a.T; t++) {
      const CellStep<Real> step = steps.step(t);
      multiply<Real>(count, reading(steps.joined(t)), WU, {static_cast<const Real *>(a.b), 0}, step.gates);
      activate(a.kind, count, H, step);
      if (t + 1 == a.T) break;
      Rows<Real> next = steps.joined(t + 1).from(a.I);
      for (int64_t row = 0; row < count; row++) std::memcpy(next[row], step.after[row], sizeof(Real) * H);
    }
  });
}

template <class Real> void layer_backward(const Layer &a) {
  const int64_t H = a.H, K = a.I + H, G = gates_of(a.kind) * H;
  const int64_t of_inputs = a.d_joined ? a.I : 0;
  Memory<Real> memory(Packed<Real>::size(G, of_inputs + H)), scratch(a.B * H);
  Packed<Real> WU;
  WU.pack(static_cast<const Real *>(a.WU) + a.I - of_inputs, G, of_inputs + H, K, 1, memory.first);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t) {
    LayerSteps<Real> steps{a, first};
    Rows<Real> d_state = steps.of(a.d_state, H, 0), d_carry = steps.of(a.d_carry, H, 0);
    for (int64_t t = a.T - 1; t >= 0; t--) {
      Rows<Real> given = steps.of(a.d_outputs, H, t), d_gates = steps.of(a.d_gates, G, t);
      for (int64_t row = 0; row < count; row++) add<Real>(d_state[row], given[row], H);
      gate_gradients(a.kind, count, H, steps.step(t), d_state, d_carry, d_gates);
      Rows<Real> d_joined = a.d_joined ? steps.of(a.d_joined, K, t) : steps.of(scratch.first, H, 0);
      multiply<Real>(count, reading(d_gates), WU, {nullptr, 0}, d_joined);
      for (int64_t row = 0; row < count; row++) add<Real>(d_state[row], d_joined[row] + of_inputs, H);
    }
  });
}

}  // namespace VARIANT
