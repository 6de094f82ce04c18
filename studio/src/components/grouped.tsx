// Lines over groups, with an interval at each point: one for each model, named where it ends.
import type { JSX } from "preact";
import { dashes } from "../color";
import { useScrollHint } from "./scrolling";

export interface Series {
  name: string;
  points: { value: number; low: number; high: number }[];
}

interface GroupedProps {
  label: string;
  across: string; // the titles of the axes
  up: string;
  counted: string;
  groups: string[];
  under: string[]; // below each group
  series: Series[];
  lit: Set<string>; // those in the foreground; none: all
  write: (value: number) => string;
}

const [W, H] = [760, 330];
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 150, 30, 66];
const COLORS = 9;

export function Grouped({ label, across, up, counted, groups, under, series, lit, write }: GroupedProps): JSX.Element {
  const all = series.flatMap(({ points }) => points.flatMap(({ low, high }) => [low, high]));
  const top = nice(Math.max(...all, 1e-9));
  const x = (g: number, c: number) => {
    const wide = (W - LEFT - RIGHT) / groups.length;
    return LEFT + wide * (g + 0.5) + (c - (series.length - 1) / 2) * Math.min(6, wide / (series.length + 2)); // side by side, so that intervals do not overlap
  };
  const y = (value: number) => H - BOTTOM - (value / top) * (H - TOP - BOTTOM);
  const frame = useScrollHint<HTMLDivElement>();
  const names = apart(series.map(({ points }) => y(points.at(-1)?.value ?? 0)));
  return (
    <div ref={frame} class="grouped" tabindex={0} role="region" aria-label={`Chart: ${label}`}>
      <svg viewBox={`0 0 ${W} ${H}`} role="img" aria-label={label}>
        <g class="axis">
          <text x={0} y={12}>
            {up}
          </text>
          <text class="under" x={LEFT - 8} y={H - BOTTOM + 36} text-anchor="end">
            {counted}
          </text>
          <text x={(LEFT + W - RIGHT) / 2} y={H - 8} text-anchor="middle">
            {across}
          </text>
        </g>
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <g key={share} class="axis">
            <line x1={LEFT} x2={W - RIGHT} y1={y(share * top)} y2={y(share * top)} />
            <text x={LEFT - 8} y={y(share * top) + 4} text-anchor="end">
              {write(share * top)}
            </text>
          </g>
        ))}
        {groups.map((group, g) => (
          <g key={g} class="axis">
            <text x={LEFT + ((W - LEFT - RIGHT) / groups.length) * (g + 0.5)} y={H - BOTTOM + 20} text-anchor="middle">
              {group}
            </text>
            <text class="under" x={LEFT + ((W - LEFT - RIGHT) / groups.length) * (g + 0.5)} y={H - BOTTOM + 36} text-anchor="middle">
              {under[g]}
            </text>
          </g>
        ))}
        {series.map(({ name, points }, c) => (
          <g key={name} class={lit.size && !lit.has(name) ? "series dim" : "series"} style={{ color: `var(--line-${c % COLORS})` }}>
            <polyline
              points={points.map(({ value }, g) => `${x(g, c)},${y(value)}`).join(" ")}
              stroke-dasharray={dashes(c)}
            />
            {points.map(({ value, low, high }, g) => (
              <g key={g}>
                <line x1={x(g, c)} x2={x(g, c)} y1={y(low)} y2={y(high)} />
                <circle cx={x(g, c)} cy={y(value)} r={3} />
              </g>
            ))}
            <text x={W - RIGHT + 10} y={names[c] + 4}>
              {name}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

/** The next round number. */
function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 5, 8, 10].find((each) => each * power >= value * 0.999) ?? 10) * power;
}

/** Names in their order, moved so that none covers another. */
function apart(places: number[], least = 15): number[] {
  const order = places.map((place, i) => ({ place, i })).sort((a, b) => a.place - b.place);
  let above = TOP - least;
  for (const each of order) above = each.place = Math.max(each.place, above + least);
  let below = H - BOTTOM + least;
  for (const each of order.reverse()) below = each.place = Math.min(each.place, below - least);
  const found = [...places];
  for (const { place, i } of order) found[i] = place;
  return found;
}
