// Every kernel under the name by which Python calls it: NAME_VARIANT_REAL. Each gives 0, or 1 when out of memory.
#include "after.h"
#include "before.h"
#include "decoding.h"
#include "dropout.h"
#include "field.h"
#include "heads.h"
#include "layer.h"
#include "loss.h"
#include "recurrent.h"
#include "window.h"

#define JOIN(a, b, c) a##_##b##_##c
#define KERNEL(name, Arguments, variant, real, Real)                                        \
  extern "C" __attribute__((visibility("default"))) int JOIN(name, variant, real)(const Arguments *a) { \
    try {                                                                                   \
      VARIANT::name<Real>(*a);                                                              \
    } catch (const std::bad_alloc &) {                                                      \
      return 1;                                                                             \
    }                                                                                       \
    return 0;                                                                               \
  }
#define KERNELS(variant, real, Real)                              \
  KERNEL(recurrent_forward, Recurrent, variant, real, Real)       \
  KERNEL(recurrent_backward, Recurrent, variant, real, Real)      \
  KERNEL(layer_forward, Layer, variant, real, Real)               \
  KERNEL(layer_backward, Layer, variant, real, Real)              \
  KERNEL(additive_forward, Additive, variant, real, Real)         \
  KERNEL(additive_backward, Additive, variant, real, Real)        \
  KERNEL(window_forward, Window, variant, real, Real)             \
  KERNEL(window_backward, Window, variant, real, Real)            \
  KERNEL(field_forward, Field, variant, real, Real)               \
  KERNEL(field_backward, Field, variant, real, Real)              \
  KERNEL(before_forward, Before, variant, real, Real)             \
  KERNEL(before_backward, Before, variant, real, Real)            \
  KERNEL(after_forward, After, variant, real, Real)               \
  KERNEL(after_backward, After, variant, real, Real)              \
  KERNEL(heads_forward, Heads, variant, real, Real)               \
  KERNEL(heads_backward, Heads, variant, real, Real)              \
  KERNEL(cross_entropy, CrossEntropy, variant, real, Real)        \
  KERNEL(dropout, Dropout, variant, real, Real)
