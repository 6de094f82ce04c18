// The tree of a search, drawn: a column for each step, the best on top, thicker lines to likelier tokens.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { dark } from "../color";
import type { Node } from "../explore/tree";
import { fixed, short, visible, width } from "../text";
import { useScrollHint } from "./scrolling";

interface TreeProps {
  columns: Node[][];
  marks?: string[]; // what stands above each column instead of its number
  chosen: Node[];
  active: Node | null;
  onActive: (node: Node | null) => void;
  onPick: (node: Node) => void;
  onKey: (event: KeyboardEvent) => void;
}

const ROW = 44;
const LETTER = 9;
const GAP = 44; // between two columns, for the lines
const TOP = 26;

export function Tree({ columns, marks, chosen, active, onActive, onPick, onKey }: TreeProps): JSX.Element {
  const frame = useScrollHint<HTMLDivElement>();
  const widths = columns.map((column) => Math.max(...column.map((node) => half(node) * 2)));
  const lefts = widths.map((_, t) => 18 + GAP * (t + 1) + widths.slice(0, t).reduce((sum, each) => sum + each, 0));
  const at = (node: Node) => ({ x: lefts[node.t] + widths[node.t] / 2, y: TOP + node.row * ROW + 14 });
  const on = new Set<Node>(chosen);
  const lit = new Set<Node>();
  for (let node = active; node && node.t >= 0; node = node.parent) lit.add(node);
  useEffect(() => {
    const given = chosen.filter((node) => node.given).length;
    if (frame.current) frame.current.scrollLeft = given ? lefts[given - 1] - 60 : 0; // where the search begins
  }, [columns]);
  useEffect(() => {
    const box = frame.current;
    if (!box || !active) return;
    const { x } = at(active);
    if (x < box.scrollLeft + 40) box.scrollLeft = x - 80;
    else if (x > box.scrollLeft + box.clientWidth - 40) box.scrollLeft = x - box.clientWidth + 80;
  }, [active]);
  const wide = (lefts.at(-1) ?? 0) + (widths.at(-1) ?? 0) + 24;
  const high = TOP + Math.max(...columns.map((column) => column.length)) * ROW;
  const nodes = columns.flat();
  const order = [...nodes.filter((node) => !on.has(node)), ...chosen]; // what is chosen lies on top
  return (
    <div
      ref={frame}
      class="tree"
      tabindex={0}
      role="application"
      aria-roledescription="search tree"
      aria-label="Search tree. Arrow keys move from token to token, Enter continues from one, Escape starts over."
      onKeyDown={onKey}
      onPointerLeave={() => onActive(null)}
    >
      <svg
        width={wide}
        height={high}
        viewBox={`0 0 ${wide} ${high}`}
        role="img"
        aria-label={`${nodes.length} tokens considered in ${columns.length} steps`}
        data-scheme={dark.value ? "dark" : "light"}
      >
        <text class="axis" x={2} y={12}>
          {marks ? "" : "step"}
        </text>
        {columns.map((_, t) => (
          <text key={t} class="axis" x={lefts[t] + widths[t] / 2} y={12} text-anchor="middle">
            {marks?.[t] ?? t + 1}
          </text>
        ))}
        <circle class="root" cx={10} cy={TOP + 14} r={4} />
        {order.map((node) => {
          const to = at(node);
          const from =
            node.parent && node.parent.t >= 0 ? { x: at(node.parent).x + half(node.parent), y: at(node.parent).y } : { x: 14, y: TOP + 14 };
          const end = to.x - half(node);
          const middle = (from.x + end) / 2;
          return (
            <path
              key={`${node.t} ${node.row}`}
              class={style("twig", node, on, lit)}
              d={`M${from.x} ${from.y} C${middle} ${from.y}, ${middle} ${to.y}, ${end} ${to.y}`}
              stroke-width={1 + 4 * Math.exp(node.logProbability)}
            />
          );
        })}
        {order.map((node) => {
          const { x, y } = at(node);
          return (
            <g
              key={`${node.t} ${node.row}`}
              class={style("knot", node, on, lit)}
              data-node={`${node.t} ${node.row}`}
              data-fate={node.fate}
              onPointerEnter={() => onActive(node)}
              onClick={() => onPick(node)}
            >
              <rect x={x - half(node)} y={y - 14} width={half(node) * 2} height={28} rx={6} />
              <text class="token" x={x} y={y + 5} text-anchor="middle" unicode-bidi="plaintext">
                {label(node)}
              </text>
              <text class="score" x={x} y={y + 25} text-anchor="middle">
                {fixed(node.score, 2)}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

const label = (node: Node): string => short(visible(node.token), 12);

/** Half the width of a node, in pixels: its token has room, and so has its score below it. */
const half = (node: Node): number => Math.max((width(label(node)) * LETTER) / 2 + 9, 19);

function style(part: string, node: Node, on: Set<Node>, lit: Set<Node>): string {
  const fate = node.fate === "passed" || node.fate === "pruned" ? "pruned" : node.fate === "kept" ? "kept" : "finished";
  return [part, fate, on.has(node) && "chosen", lit.has(node) && "lit", node.given && "given"].filter(Boolean).join(" ");
}
