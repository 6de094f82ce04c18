// Source on one side, target on the other, lines between them as thick as their weights. One token is active: by
// pointing, or by the arrow keys.
import type { JSX } from "preact";
import { dark, line as linkColor, text as paperInk } from "../color";
import { task } from "../session";
import { short, visible, width } from "../text";
import { useScrollHint } from "./scrolling";

export interface End {
  side: "source" | "target";
  at: number;
}

export interface LinesProps {
  source: string[];
  target: string[];
  values: number[][]; // (target, source)
  label: string;
  active?: End | null;
  onActive?: (end: End | null) => void;
}

const ROW = 30;
const TITLE = 26;
const LEAST = 0.015; // a weight below it is no line
const THICK = 13;

export function Lines(props: LinesProps): JSX.Element {
  const frame = useScrollHint<HTMLDivElement>();
  const { source, target, label, active, onActive } = props;
  const move = (event: KeyboardEvent) => {
    const from = active ?? { side: "target", at: -1 };
    const length = (side: End["side"]) => (side === "source" ? source : target).length;
    const to: Record<string, End> = {
      ArrowUp: { side: from.side, at: from.at - 1 },
      ArrowDown: { side: from.side, at: from.at + 1 },
      ArrowLeft: { side: "source", at: from.at },
      ArrowRight: { side: "target", at: from.at },
    };
    const next = to[event.key];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    onActive?.({ side: next.side, at: Math.min(Math.max(next.at, 0), length(next.side) - 1) });
  };
  return (
    <div
      ref={frame}
      class="lines"
      tabindex={0}
      role="application"
      aria-roledescription="alignment"
      aria-label={`${label}. Arrow keys move from token to token.`}
      onKeyDown={move}
      onPointerLeave={() => onActive?.(null)}
    >
      <DrawnLines {...props} />
    </div>
  );
}

/** The picture itself, also for export. */
export function DrawnLines({ source, target, values, label, active, onActive }: LinesProps): JSX.Element {
  const night = dark.value;
  const [text, line] = [paperInk(night), linkColor(night)];
  const room = (tokens: string[]) => Math.min(Math.max(4, ...tokens.map((token) => width(short(visible(token), 20)))), 20) * 10 + 24;
  const [left, right] = [room(source), room(target)];
  const middle = 420;
  const height = Math.max(source.length, target.length) * ROW + TITLE + 8;
  const y = (i: number, count: number) => TITLE + (height - TITLE - count * ROW) / 2 + (i + 0.5) * ROW;
  const on = (s: number, t: number) => !active || (active.side === "source" ? active.at === s : active.at === t);
  const linked = (side: End["side"], i: number) => {
    if (!active) return true;
    if (active.side === side) return active.at === i;
    return (side === "source" ? values[active.at]?.[i] : values[i]?.[active.at]) >= 0.1;
  };
  const name = (side: End["side"], token: string, i: number, x: number, count: number) => (
    <text
      key={`${side}${i}`}
      x={x}
      y={y(i, count) + 6}
      text-anchor={side === "source" ? "end" : "start"}
      unicode-bidi="plaintext"
      opacity={linked(side, i) ? 1 : 0.3}
      fill={active?.side === side && active.at === i ? line : text}
      onPointerEnter={() => onActive?.({ side, at: i })}
    >
      {short(visible(token), 20)}
    </text>
  );
  return (
    <svg
      viewBox={`0 0 ${left + middle + right} ${height}`}
      width={left + middle + right}
      height={height}
      role="img"
      aria-label={label}
      font-family="Charter, 'Noto Serif', Georgia, serif"
      font-size="18"
    >
      <g fill="none" stroke={line}>
        {values.map((row, t) =>
          row.map((weight, s) => {
            if (weight < LEAST) return null;
            const [from, to] = [y(s, source.length), y(t, target.length)];
            const [x1, x2] = [left, left + middle];
            return (
              <path
                key={`${t} ${s}`}
                d={`M${x1} ${from} C${x1 + middle * 0.45} ${from}, ${x2 - middle * 0.45} ${to}, ${x2} ${to}`}
                stroke-width={Math.max(0.6, Math.min(weight, 1.2) * THICK)}
                opacity={on(s, t) ? 0.22 + 0.6 * Math.min(weight, 1) : 0.04}
              />
            );
          }),
        )}
      </g>
      <g font-size="13" font-family="system-ui, 'Noto Sans', sans-serif" fill={text} opacity={0.75}>
        <text x={left - 12} y={14} text-anchor="end">
          {task.value.axes[0]}
        </text>
        <text x={left + middle + 12} y={14}>
          {task.value.axes[1]}
        </text>
      </g>
      {source.map((token, s) => name("source", token, s, left - 12, source.length))}
      {target.map((token, t) => name("target", token, t, left + middle + 12, target.length))}
    </svg>
  );
}
