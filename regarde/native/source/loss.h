// Softmax cross-entropy with label smoothing, in place: each row of logits becomes the gradient of its loss.
//
//     loss = log Z - (1 - e) x_target - e mean(x),   Z = sum exp(x)        d x = softmax(x) - (1 - e) [target] - e / V
#pragma once
#include "arguments.h"
#include "parallel.h"
#include "vector.h"

namespace VARIANT {

template <class Real> void cross_entropy(const CrossEntropy &a) {
  const int64_t V = a.V;
  const Real scale = static_cast<Real>(a.scale), each = static_cast<Real>(a.scale * a.smoothing / static_cast<double>(V));
  parallel(a.rows, a.threads, [&](int64_t first, int64_t count, int64_t) {
    for (int64_t i = first; i < first + count; i++) {
      Real *x = static_cast<Real *>(a.logits) + i * V;
      const int64_t target = a.targets[i];
      if (target == a.ignored) {
        std::memset(x, 0, sizeof(Real) * V);
        a.losses[i] = 0;
        continue;
      }
      Vector<Real> highest = all<Real>(-INFINITY);
      Vector<Real> mean = {};
      FOR_LANES(Real, j, n, V) {
        Vector<Real> piece = load<Real>(x + j, n);
        mean += piece;
        if (n < Lanes<Real>::count)
          for (int64_t k = n; k < Lanes<Real>::count; k++) piece[k] = -INFINITY;
        highest = larger(highest, piece);
      }
      const Real top = largest<Real>(highest), of_target = x[target];
      Vector<Real> total = {};
      FOR_LANES(Real, j, n, V) {
        Vector<Real> e = exponential(load<Real>(x + j, n) - top);
        store<Real>(x + j, e, n);
        if (n < Lanes<Real>::count)
          for (int64_t k = n; k < Lanes<Real>::count; k++) e[k] = 0;
        total += e;
      }
      const Real Z = sum<Real>(total), share = scale / Z;
      FOR_LANES(Real, j, n, V) store<Real>(x + j, load<Real>(x + j, n) * share - each, n);
      x[target] -= static_cast<Real>(a.scale * (1 - a.smoothing));
      a.losses[i] = std::log(static_cast<double>(Z)) + top - (1 - a.smoothing) * of_target -
                    a.smoothing * sum<Real>(mean) / static_cast<double>(V);
      // a logit that is not a number is lost in a comparison: say so in the loss
      if (!(sum<Real>(mean) - sum<Real>(mean) == 0)) a.losses[i] = NAN;
    }
  });
}

}  // namespace VARIANT
