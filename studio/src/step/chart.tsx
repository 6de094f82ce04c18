// From source to context, a row for each source token: its state, its score, its weight, and what of it is brought back.
import type { JSX } from "preact";
import { set, word } from "../address";
import { Token } from "../components/tokens";
import { fixed, percent } from "../text";
import { bounds, columns, contextNorm, energies, open, opened, phase, plain as without, reached, rows, strongest, weights } from "./moment";

export function Chart(): JSX.Element | null {
  const tokens = columns.value;
  const shown = rows.value;
  const plain = without.value;
  const side = shown.length > 18 ? 27 : 32;
  return (
    <div class={plain ? "chart plainly" : "chart"} style={{ "--row": `${side}px` }}>
      <div class="heads" aria-hidden="true">
        <span />
        <span class={dim("states")}>state</span>
        {plain ? null : (
          <span class={`measure score ${dim("scores")}`} style={{ "--zero": `${zero() * 100}%` }}>
            <span class="ends">
              <b>0</b>
            </span>
            <span>score</span>
          </span>
        )}
        {plain ? null : (
          <span class={`measure weight ${dim("softmax")}`}>
            <span class="ends">
              <span>0</span>
              <span>1</span>
            </span>
            <span>weight</span>
          </span>
        )}
      </div>
      <div class="rows">
        <ul>
          {shown.map((j) => (
            <Row key={j} j={j} token={tokens[j]} plain={plain} />
          ))}
        </ul>
        <Ribbons side={side} plain={plain} />
        <button
          type="button"
          class={`context ${dim(plain ? "states" : "context")}`}
          aria-pressed={opened.value.phase === (plain ? "states" : "context")}
          {...quantity(plain ? "states" : "context")}
        >
          <i>c</i>
          {contextNorm.value === null ? null : <span class="hidden"> of norm {fixed(contextNorm.value)}</span>}
        </button>
      </div>
      {shown.length < tokens.length || word("all") ? <More all={tokens.length} /> : null}
    </div>
  );
}

type Column = "states" | "scores" | "softmax" | "context";
const dim = (each: Column): string => (reached(each) ? "" : "yet");
const quantity = (each: Column, j: number | null = null) => ({ disabled: !reached(each), onClick: () => open(each, j) });

function Row({ j, token, plain }: { j: number; token: string; plain: boolean }): JSX.Element {
  const weight = weights.value[j] ?? 0;
  const energy = energies.value?.[j] ?? null;
  const [low, high] = bounds.value;
  const share = (value: number) => value / (high - low || 1);
  const bar = { "--zero": `${zero() * 100}%`, "--from": `${(zero() + share(Math.min(energy ?? 0, 0))) * 100}%`, "--size": `${share(Math.abs(energy ?? 0)) * 100}%` };
  const isOpen = (each: string) => opened.value.phase === each && (opened.value.j ?? strongest.value) === j;
  return (
    <li class={!plain && j === strongest.value && reached("softmax") ? "strongest" : undefined}>
      <span class="what">
        <Token of={token} />
      </span>
      <button type="button" class={`state ${dim("states")}`} aria-label={`State of ${token}`} aria-pressed={isOpen("states")} {...quantity("states", j)}>
        h<sub>{j + 1}</sub>
      </button>
      {plain ? null : (
        <button
          type="button"
          class={`measure score ${dim("scores")}`}
          aria-label={`Score of ${token}: ${energy === null ? "none" : fixed(energy)}`}
          aria-pressed={isOpen("scores")}
          {...quantity("scores", j)}
        >
          <span class="gauge" style={bar} />
          <span class="figure">{energies.value ? fixed(energy, 2) : "·"}</span>
        </button>
      )}
      {plain ? null : (
        <button
          type="button"
          class={`measure weight ${dim("softmax")}`}
          aria-label={`Weight of ${token}: ${percent(weight)}`}
          aria-pressed={isOpen("softmax")}
          {...quantity("softmax", j)}
        >
          <span class="gauge" style={{ "--size": `${Math.min(weight, 1) * 100}%` }} />
          <span class="figure">{fixed(weight, 3)}</span>
        </button>
      )}
    </li>
  );
}

/** Where zero is on the axis of scores, in 0…1. */
const zero = (): number => -bounds.value[0] / (bounds.value[1] - bounds.value[0] || 1);

/** Lines that meet in the context, as thick as their weights. */
function Ribbons({ side, plain }: { side: number; plain: boolean }): JSX.Element {
  const shown = rows.value;
  const height = shown.length * side;
  const shows = reached("context") || plain;
  return (
    <svg class={shows ? "ribbons" : "ribbons yet"} viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" style={{ height: `${height}px` }} aria-hidden="true">
      {shown.map((j, i) => {
        const weight = plain ? 0.04 : (weights.value[j] ?? 0);
        const y = (i + 0.5) * side;
        return (
          <path
            key={j}
            d={`M0 ${y} C 55 ${y}, 45 ${height / 2}, 100 ${height / 2}`}
            stroke-width={Math.max(0.6, weight * 22)}
            opacity={0.14 + 0.76 * Math.min(1, weight * 1.4)}
            class={phase.value === "context" ? "moving" : undefined}
            vector-effect="non-scaling-stroke"
          />
        );
      })}
    </svg>
  );
}

function More({ all }: { all: number }): JSX.Element {
  const every = word("all") !== "";
  return (
    <p class="more">
      {every ? `All ${all} tokens. ` : `${rows.value.length} of ${all} tokens, those with the largest weights. `}
      <button type="button" class="plain" onClick={() => set({ all: every ? null : 1 })}>
        {every ? "Show fewer" : "Show all"}
      </button>
    </p>
  );
}
