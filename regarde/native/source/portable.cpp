// The kernels for any processor, in single and double precision.
#define VARIANT portable
#include "kernels.h"

KERNELS(portable, f32, float)
KERNELS(portable, f64, double)
const Table portable_table = TABLE;
