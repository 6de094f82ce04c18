// A text whose tokens are shaded by their weights, and can be pointed at.
import type { JSX } from "preact";
import { dark, heat, ink } from "../color";
import { fixed, visible } from "../text";
import { Line, runsOn, Token } from "./tokens";

interface WeightedProps {
  label: string;
  tokens: string[];
  weights: number[];
  top: number; // the weight with the strongest color
  onLook: (at: number | null) => void;
}

export function Weighted({ label, tokens, weights, top, onLook }: WeightedProps): JSX.Element {
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
