// The weights of all heads, one strip each; one head, or the mean, can be selected.
import type { JSX } from "preact";
import { set } from "../address";
import { dark, heat } from "../color";
import { part, parts, trace } from "../session";
import { moment } from "./moment";

export function Glance(): JSX.Element | null {
  const { layers, heads } = parts.value;
  if (layers * heads < 2 || !moment.value) return null;
  const { layer, head } = part.value;
  return (
    <div class="glance" role="group" aria-label="Layers and heads">
      {moment.value.branch.weights.map((rows, l) => (
        <div class="layer" key={l}>
          <button type="button" class="plain" aria-pressed={layer === l && head === null} onClick={() => set({ layer: l, head: null })}>
            Layer {l + 1}
          </button>
          {rows.map((row, n) => (
            <button
              type="button"
              key={n}
              class="strip"
              aria-label={`Layer ${l + 1}, head ${n + 1}`}
              aria-pressed={layer === l && head === n}
              style={{ backgroundImage: strip(row) }}
              onClick={() => set({ layer: l, head: n })}
            />
          ))}
        </div>
      ))}
      <p class="quiet small">Each strip is one head: its weight on each {trace.value?.looks_back ? "earlier" : "source"} token, relative to the largest weight of the head.</p>
      <button type="button" class="plain" aria-pressed={layer === null && head === null} onClick={() => set({ layer: null, head: null })}>
        Mean of all
      </button>
    </div>
  );
}

/** A row of weights as bands of color, relative to the largest: in a long sentence all weights are small. */
function strip(row: number[]): string {
  const night = dark.value;
  const top = Math.max(...row) || 1;
  const at = (i: number) => `${((100 * i) / row.length).toFixed(2)}%`;
  return `linear-gradient(to right, ${row.map((weight, j) => `${heat(weight / top, night)} ${at(j)} ${at(j + 1)}`).join(", ")})`;
}
