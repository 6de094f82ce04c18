// Curves over training steps, with their names at their ends; the readout shows the point nearest to the pointer.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { dashes } from "../color";
import { fixed } from "../text";
import { Numbers } from "./numbers";

export interface Curve {
  name: string;
  points: [number, number][]; // step and value, in the order of steps
}

const H = 262;
const LEFT = 58;
const TOP = 30;
const BOTTOM = 46;

interface CurvesProps {
  title: string;
  unit: string;
  curves: Curve[];
  logarithmic?: boolean;
  narrow?: boolean; // one of three beside each other
}

export function Curves({ title, unit, curves, logarithmic = false, narrow = false }: CurvesProps): JSX.Element | null {
  const at = useSignal<number | null>(null);
  const W = narrow || innerWidth < 600 ? 380 : 560; // about the width on the page, so that letters keep their size
  const points = curves.flatMap(({ points }) => points);
  if (!points.length) return null;
  const right = curves.some(({ name }) => name) ? 84 : 16; // room for the names at the ends of lines
  const steps = points.map(([step]) => step);
  const [first, last] = [Math.min(...steps, 0), Math.max(...steps)];
  const rise = logarithmic && points.every(([, value]) => value > 0) ? Math.log10 : (value: number) => value;
  const values = points.map(([, value]) => rise(value));
  const [low, high] = spread(Math.min(...values), Math.max(...values));
  const x = (step: number) => LEFT + ((step - first) / (last - first || 1)) * (W - LEFT - right);
  const y = (value: number) => H - BOTTOM - ((rise(value) - low) / (high - low)) * (H - TOP - BOTTOM);
  const marks = rise === Math.log10 ? decades(low, high) : ticks(low, high);
  const point = at.value === null ? null : nearest(curves, at.value);
  const all = [...new Set(steps)].sort((a, b) => a - b);
  const follow = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * W;
    at.value = first + ((place - LEFT) / (W - LEFT - right)) * (last - first);
  };
  const move = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const now = at.value === null ? (by > 0 ? -1 : all.length) : all.findIndex((step) => step >= at.value!);
    at.value = all[Math.min(Math.max(now + by, 0), all.length - 1)];
  };
  return (
    <section class="curves" aria-label={title}>
      <h2>{title}</h2>
      <p class="readout small" role="status">
        {point ? `Step ${point.step.toLocaleString("en")}: ${point.values.map(([name, value]) => `${name} ${figure(value)}`).join(", ")}` : ""}
      </p>
      <svg
        viewBox={`0 0 ${W} ${H}`}
        tabindex={0}
        role="application"
        aria-roledescription="curves"
        aria-label={`${title}: ${curves.map(({ name }) => name).join(", ")}. Arrow keys move from step to step.`}
        onPointerMove={follow}
        onPointerLeave={() => (at.value = null)}
        onKeyDown={move}
      >
        <text class="title" x={0} y={12}>
          {rise === Math.log10 ? `${unit}, log scale` : unit}
        </text>
        <text class="title" x={(LEFT + W - right) / 2} y={H - 6} text-anchor="middle">
          training step
        </text>
        {marks.map((value) => (
          <g key={value} class="tick">
            <line x1={LEFT} x2={W - right} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 8} y={y(value) + 4} text-anchor="end">
              {figure(value)}
            </text>
          </g>
        ))}
        {ticks(first, last, 4).map((step) => (
          <text key={step} class="title" x={x(step)} y={H - 26} text-anchor="middle">
            {step.toLocaleString("en")}
          </text>
        ))}
        {curves.map(({ name, points }, i) => (
          <g key={name} class="series" style={{ color: `var(--line-${i})` }}>
            <path stroke-dasharray={dashes(i)} d={points.map(([step, value], k) => `${k ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("")} />
            {points.length < 60 ? points.map(([step, value]) => <circle key={step} cx={x(step)} cy={y(value)} r={2.2} />) : null}
          </g>
        ))}
        {apart(curves.map(({ points }) => (points.length ? y(points.at(-1)![1]) : H))).map((place, i) => (
          <text key={curves[i].name} style={{ fill: `var(--line-${i})` }} x={x(curves[i].points.at(-1)?.[0] ?? last) + 8} y={place + 4}>
            {curves[i].name}
          </text>
        ))}
        {point ? <line class="here" x1={x(point.step)} x2={x(point.step)} y1={TOP} y2={H - BOTTOM} /> : null}
      </svg>
      <Numbers
        caption={`${title} at each step`}
        corner="step"
        columns={curves.map(({ name }) => name)}
        digits={4}
        rows={all.map((step) => ({
          head: step.toLocaleString("en"),
          cells: curves.map(({ points }) => points.find(([each]) => each === step)?.[1] ?? ""),
        }))}
      />
    </section>
  );
}

/** Three significant digits, without zeros at the end. */
function figure(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e6) return value.toExponential(1).replace("e+", "e").replace(".0e", "e").replace("-", "−");
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  const digits = Math.min(Math.max(2 - Math.floor(Math.log10(size)), 0), 6);
  return fixed(value, digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/** The range with a margin above and below; not empty where all values are equal. */
function spread(low: number, high: number): [number, number] {
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}

/** Round numbers in a range. */
export function ticks(low: number, high: number, most = 5): number[] {
  const rough = (high - low) / most || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough)!;
  const from = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - from + 1) }, (_, i) => Number(((from + i) * step).toPrecision(12)));
}

/** Powers of ten, with halves where there are few. */
function decades(low: number, high: number): number[] {
  const all = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, i) => 10 ** (Math.floor(low) + i));
  const finer = high - low < 2 ? all.flatMap((each) => [each, 3 * each]) : all;
  return finer.filter((each) => Math.log10(each) >= low && Math.log10(each) <= high);
}

/** Names at the ends of lines, moved so that none covers another. */
function apart(places: number[]): number[] {
  const order = places.map((place, i) => ({ place, i })).sort((a, b) => a.place - b.place);
  for (let k = 1; k < order.length; k += 1) order[k].place = Math.max(order[k].place, order[k - 1].place + 15);
  const moved = [...places];
  for (const { place, i } of order) moved[i] = place;
  return moved;
}

function nearest(curves: Curve[], at: number): { step: number; values: [string, number][] } | null {
  const steps = curves.flatMap(({ points }) => points.map(([step]) => step));
  if (!steps.length) return null;
  const step = steps.reduce((best, each) => (Math.abs(each - at) < Math.abs(best - at) ? each : best));
  const values = curves.flatMap(({ name, points }): [string, number][] => {
    const found = points.find(([each]) => each === step);
    return found ? [[name, found[1]]] : [];
  });
  return { step, values };
}
