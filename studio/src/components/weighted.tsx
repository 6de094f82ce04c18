// Texts whose tokens are shaded by their weights, and the weight of the token that is pointed at.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { link } from "../address";
import { dark, heat, ink, top } from "../color";
import { fixed, visible } from "../text";
import { Scale } from "./scale";
import { Line, runsOn, Token } from "./tokens";

export interface WeightedRow {
  heading: ComponentChildren;
  label: string;
  tokens: string[];
  weights: number[];
  source?: string; // what the weights are of, where there are several
}

interface AttendedProps {
  title?: string;
  rows: WeightedRow[];
  hint: string; // where nothing is pointed at
  children: JSX.Element; // the numbers
}

export function Attended({ title, rows, hint, children }: AttendedProps): JSX.Element {
  const looked = useSignal<{ row: number; at: number } | null>(null);
  const highest = top([rows.map(({ weights }) => weights)]);
  const one = looked.value;
  const row = one && rows[one.row];
  return (
    <section class="attended">
      {title ? <h2>{title}</h2> : null}
      {rows.map(({ heading, label, tokens, weights }, i) => (
        <div class="query" key={i}>
          {heading}
          <Weighted label={label} tokens={tokens} weights={weights} top={highest} onLook={(at) => (looked.value = at === null ? null : { row: i, at })} />
        </div>
      ))}
      <Scale top={highest} name="attention weight" />
      <p class="readout" role="status">
        {row && one.at < row.tokens.length ? (
          <>
            <Token of={row.tokens[one.at]} /> {fixed(row.weights[one.at])}
            {row.source ? <span class="quiet"> of {row.source}</span> : null}
          </>
        ) : (
          <span class="quiet">{hint}</span>
        )}{" "}
        <a href={link("step")}>Show how they are computed</a>
      </p>
      {children}
    </section>
  );
}

interface WeightedProps {
  label: string;
  tokens: string[];
  weights: number[];
  top: number; // the weight with the strongest color
  onLook: (at: number | null) => void;
}

function Weighted({ label, tokens, weights, top, onLook }: WeightedProps): JSX.Element {
  const night = dark.value;
  return (
    <Line label={label} close={runsOn(tokens)}>
      {tokens.map((token, j) => {
        const at = weights[j] / top;
        return (
          <button
            type="button"
            key={j}
            class={/^<.*>$/.test(token) ? "chip weighted control" : "chip weighted"}
            style={at > 0.01 ? { background: heat(at, night), color: ink(at, night) } : undefined}
            aria-label={`${visible(token)}, weight ${fixed(weights[j])}`}
            onPointerEnter={() => onLook(j)}
            onPointerLeave={() => onLook(null)}
            onFocus={() => onLook(j)}
            onBlur={() => onLook(null)}
          >
            <Token of={token} />
          </button>
        );
      })}
    </Line>
  );
}
