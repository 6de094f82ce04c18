// What is asked of the engine, as native/library.py writes it.
#pragma once
#include <cstdint>

namespace engine {

struct Request {
  int64_t count, kind, size, n_best, min_length, max_extra, context, allow_unknown, top_k, rows, threads;
  int64_t watched;  // 0, or a trace is asked for, with so many candidates at each step
  int64_t pins;     // of attention
  int64_t first;    // what a hypothesis begins with; -1: anything
  int64_t power, early, cut;  // Beam.penalty, Beam.early, Beam.cut
  double alpha, beta, prune, max_ratio, top_p, temperature;
  const int64_t *starts, *ids;                // the sources: count + 1, and all tokens without EOS
  const int64_t *target_starts, *target_ids;  // forced decoding: what is said, EOS included
  const double *dice;                         // sampling: numbers in [0, 1), for each sentence and sample as many as it may need
  const int64_t *dice_starts;                 // count x n_best
  const int64_t *prefix_starts, *prefix_ids;  // null, or how each translation must begin
  const int64_t *barred_starts, *barred_ids;  // and what may not come right after
  const uint8_t *masked;                      // null, or interventions: as in interventions.h
  const int64_t *pin_places;
  const float *pinned;
};
enum SearchKind : int64_t { GREEDY, BEAM, SAMPLING, FORCED };

}  // namespace engine
