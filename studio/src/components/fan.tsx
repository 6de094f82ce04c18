// The past of a series and the fan of its forecast. Behind the past are the weights of one step to come, or their mean.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { heat } from "../color";
import { ticks } from "./curves";

/** A band between two quantiles. */
export interface Band {
  low: number[];
  high: number[];
  share: number; // of the paths that are inside
}

export interface FanProps {
  label: string;
  past: (number | null)[];
  times: string[]; // of the past and of the forecast
  median: number[];
  bands: Band[]; // the widest first
  weights: number[]; // of the past; empty without attention
  top: number; // the weight with the strongest color
  season: number;
  at: number | null; // the step that is looked at
  onAt: (at: number | null) => void;
}

const H = 320;
const LEFT = 52;
const RIGHT = 10;
const TOP = 12;
const STRIP = 16; // of the weights, below the values
const BOTTOM = 68;

export function Fan({ label, past, times, median, bands, weights, top, season, at, onAt }: FanProps): JSX.Element {
  const held = useSignal(false); // a step that was clicked stays
  const W = innerWidth < 600 ? 380 : 1120; // about the width on the page, so that letters keep their size
  const S = past.length;
  const N = S + median.length;
  const known = [...past.filter((value) => value !== null), ...median, ...bands.flatMap(({ low, high }) => [...low, ...high])];
  const [low, high] = widened(Math.min(...known), Math.max(...known));
  const wide = (W - LEFT - RIGHT) / N;
  const x = (step: number) => LEFT + (step + 0.5) * wide;
  const y = (value: number) => H - BOTTOM - ((value - low) / (high - low)) * (H - TOP - BOTTOM);
  const strip = H - BOTTOM + 6;
  const line = (values: (number | null)[], first: number) =>
    values.map((value, i) => (value === null ? "" : `${i && values[i - 1] !== null ? "L" : "M"}${x(first + i).toFixed(1)} ${y(value).toFixed(1)}`)).join("");
  const place = (t: number, value: number) => `${x(S + t).toFixed(1)},${y(value).toFixed(1)}`;
  const follow = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const step = Math.floor((((event.clientX - box.left) / box.width) * W - LEFT) / wide) - S;
    return step >= 0 && step < median.length ? step : null;
  };
  const move = (event: KeyboardEvent) => {
    const now = at ?? -1;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: median.length - 1 }[event.key];
    if (event.key === "Escape") onAt(null);
    if (to === undefined) return;
    event.preventDefault();
    onAt(Math.min(Math.max(to, 0), median.length - 1));
  };
  const earlier = at === null || season < 2 ? [] : Array.from({ length: S }, (_, s) => s).filter((s) => (S + at - s) % season === 0);
  return (
    <svg
      class="fan"
      viewBox={`0 0 ${W} ${H}`}
      tabindex={0}
      role="application"
      aria-roledescription="fan chart"
      aria-label={`${label}. Arrow keys move from step to step of the forecast, Escape leaves it.`}
      onPointerMove={(event) => !held.value && event.pointerType === "mouse" && onAt(follow(event))}
      onPointerLeave={() => !held.value && onAt(null)}
      onClick={(event) => {
        const step = follow(event);
        held.value = step !== null && !(held.value && step === at);
        onAt(step);
      }}
      onKeyDown={move}
    >
      {ticks(low, high).map((value) => (
        <g key={value} class="tick">
          <line x1={LEFT} x2={W - RIGHT} y1={y(value)} y2={y(value)} />
          <text x={LEFT - 8} y={y(value) + 4} text-anchor="end">
            {value.toLocaleString("en", { maximumSignificantDigits: 4 })}
          </text>
        </g>
      ))}
      {weights.map((weight, s) => (
        <g key={s} class="look" data-weight={weight.toFixed(6)}>
          <rect shape-rendering="crispEdges" x={x(s) - wide / 2} width={wide} y={strip} height={STRIP} fill={heat(weight / top)} />
          {weight > top / 4 && at !== null ? <rect class="beam" x={x(s) - wide / 2} width={wide} y={TOP} height={H - BOTTOM - TOP} fill={heat(weight / top)} /> : null}
        </g>
      ))}
      {bands.map(({ low: under, high: over, share }) => (
        <polygon key={share} class="band" points={[...over.map((value, t) => place(t, value)), ...under.map((value, t) => place(t, value)).reverse()].join(" ")} />
      ))}
      <path class="past" d={line(past, 0)} />
      <path class="median" d={line(median, S)} />
      <line class="now" x1={LEFT + S * wide} x2={LEFT + S * wide} y1={TOP} y2={H - BOTTOM} />
      {at === null ? null : (
        <g class="chosen">
          <line x1={x(S + at)} x2={x(S + at)} y1={TOP} y2={H - BOTTOM} />
          <circle cx={x(S + at)} cy={y(median[at])} r={4} />
        </g>
      )}
      {weights.length ? earlier.map((s) => <path key={s} class="season" d={`M${x(s)} ${strip + STRIP + 2}l-3 5h6z`} />) : null}
      <Ends W={W} times={times} S={S} x={x} />
    </svg>
  );
}

/** When the past begins, when the forecast begins and ends. */
function Ends({ W, times, S, x }: { W: number; times: string[]; S: number; x: (step: number) => number }): JSX.Element {
  const y = H - 8;
  return (
    <g class="ends">
      <text x={LEFT} y={y}>
        {shortly(times[0])}
      </text>
      <text x={x(S)} y={y - 16} text-anchor="middle">
        {shortly(times[S])}
      </text>
      <text x={W - RIGHT} y={y} text-anchor="end">
        {shortly(times[times.length - 1])}
      </text>
    </g>
  );
}

/** A time without its seconds; midnight is a day. */
export const shortly = (time: string): string => time.replace(/(T\d\d:\d\d):\d\d$/, "$1").replace("T", " ");

function widened(low: number, high: number): [number, number] {
  const more = (high - low || Math.abs(high) || 1) * 0.04;
  return [low - more, high + more];
}
