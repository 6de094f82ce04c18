// What if attention looked elsewhere: search/interventions.py says what its changes mean.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace engine {

// For a sentence of S tokens, in a model of so many heads.
struct Interventions {
  int64_t heads, pins;
  const uint8_t *masked;  // (layers, heads, S)
  const int64_t *places;  // (pins, 3) step, layer and head; -1 for all
  const float *pinned;    // (pins, S) NaN where a weight is a share of what is left

  // Scores of what may not be looked at.
  void mask(int64_t layer, int64_t head, int64_t S, float *scores) const {
    const uint8_t *here = masked + (layer * heads + head) * S;
    for (int64_t s = 0; s < S; s++)
      if (here[s]) scores[s] = -INFINITY;
  }

  // Weights as given; the others share the rest in their proportions, or alike where they have none.
  void pin(int64_t step, int64_t layer, int64_t head, const std::vector<uint8_t> &open, float *weights) const {
    const int64_t S = static_cast<int64_t>(open.size());
    const uint8_t *closed = masked + (layer * heads + head) * S;
    for (int64_t p = 0; p < pins; p++) {
      const int64_t *place = places + 3 * p;
      if (place[0] != step || (place[1] >= 0 && place[1] != layer) || (place[2] >= 0 && place[2] != head)) continue;
      const float *row = pinned + p * S;
      float rest = 1, others = 0;
      int64_t places_left = 0;
      for (int64_t s = 0; s < S; s++) {
        if (!std::isnan(row[s])) rest -= row[s];
        else others += weights[s], places_left += open[s] && !closed[s];
      }
      rest = std::max(rest, 0.0f);
      for (int64_t s = 0; s < S; s++) {
        if (!std::isnan(row[s])) weights[s] = row[s];
        else if (others > 0) weights[s] *= rest / others;
        else weights[s] = open[s] && !closed[s] ? rest / static_cast<float>(places_left) : 0.0f;
      }
    }
  }
};

}  // namespace engine
