// The architecture's own diagram: one step of the decoder, drawn as its paper draws it. The part that the step has
// reached is inked; each part opens its formula.
import type { JSX } from "preact";
import { NAMES, type Phase, type Place } from "../model";

interface Node {
  id: string;
  x: number;
  y: number;
  name: string; // with _ before what stands lower and ^ before what stands higher
  phase?: Phase;
  wide?: number;
}

interface Drawing {
  nodes: Node[];
  edges: [string, string][];
}

const P: Node = { id: "p", x: 430, y: 34, name: "p(y_t)", phase: "words", wide: 58 };
const Y: Node = { id: "y", x: 516, y: 34, name: "y_t", phase: "token" };
const BEFORE: Node = { id: "before", x: 44, y: 34, name: "y_t−1" };
const ATTEND: Node = { id: "attend", x: 230, y: 172, name: "α_t", phase: "softmax" };
const CONTEXT: Node = { id: "context", x: 330, y: 172, name: "c_t", phase: "context" };
const SAID: [string, string] = ["p", "y"];
const LOOKED: [string, string][] = [["h", "attend"], ["attend", "context"]];
const ENCODER: Node = { id: "h", x: 230, y: 244, name: "h_1 … h_S", phase: "states", wide: 150 };

const DRAWINGS: Record<Place, Drawing> = {
  before: {
    nodes: [BEFORE, P, Y, ATTEND, CONTEXT, ENCODER, { id: "last", x: 130, y: 104, name: "s_t−1" }, { id: "state", x: 330, y: 104, name: "s_t", phase: "state" }],
    edges: [["last", "attend"], ...LOOKED, ["context", "state"], ["last", "state"], ["before", "state"], ["state", "p"], SAID],
  },
  inside: {
    nodes: [BEFORE, P, Y, ATTEND, CONTEXT, ENCODER, { id: "last", x: 90, y: 104, name: "s_t−1" }, { id: "first", x: 230, y: 104, name: "s′_t", phase: "state" }, { id: "state", x: 360, y: 104, name: "s_t" }],
    edges: [["last", "first"], ["before", "first"], ["first", "attend"], ...LOOKED, ["context", "state"], ["first", "state"], ["state", "p"], SAID],
  },
  after: {
    nodes: [BEFORE, P, Y, ATTEND, CONTEXT, ENCODER, { id: "last", x: 90, y: 104, name: "h_t−1" }, { id: "state", x: 230, y: 104, name: "h_t", phase: "state" }, { id: "mixed", x: 360, y: 104, name: "h̃_t" }],
    edges: [["last", "state"], ["before", "state"], ["state", "attend"], ...LOOKED, ["context", "mixed"], ["state", "mixed"], ["mixed", "p"], SAID],
  },
  bottom: {
    nodes: [BEFORE, P, Y, ATTEND, CONTEXT, ENCODER, { id: "last", x: 130, y: 104, name: "h^1_t−1" }, { id: "state", x: 300, y: 104, name: "h^1_t", phase: "state" }, { id: "top", x: 390, y: 104, name: "h^L_t" }],
    edges: [["last", "attend"], ...LOOKED, ["context", "state"], ["context", "top"], ["last", "state"], ["before", "state"], ["state", "top"], ["top", "p"], SAID],
  },
  layers: {
    nodes: [BEFORE, P, Y, ATTEND, CONTEXT, ENCODER, { id: "state", x: 130, y: 104, name: "self-attention", phase: "state", wide: 116 }, { id: "feed", x: 360, y: 104, name: "feed-forward", wide: 108 }],
    edges: [["before", "state"], ["state", "attend"], ...LOOKED, ["context", "feed"], ["state", "feed"], ["feed", "p"], SAID],
  },
  somewhere: {
    nodes: [BEFORE, P, Y, ATTEND, CONTEXT, ENCODER, { id: "state", x: 280, y: 104, name: "decoder", phase: "state", wide: 150 }],
    edges: [["before", "state"], ["state", "attend"], ...LOOKED, ["context", "state"], ["state", "p"], SAID],
  },
  query: {
    nodes: [{ ...P, name: "p(y)" }, { ...Y, name: "y" }, ATTEND, CONTEXT, ENCODER, { id: "query", x: 90, y: 172, name: "q" }],
    edges: [["query", "attend"], ...LOOKED, ["context", "p"], SAID],
  },
  back: {
    nodes: [BEFORE, P, Y, ATTEND, CONTEXT, { ...ENCODER, name: "h_1 … h_t−1" }, { id: "state", x: 230, y: 104, name: "h_t", phase: "state" }],
    edges: [["before", "state"], ["state", "attend"], ...LOOKED, ["context", "p"], ["state", "p"], SAID],
  },
  alone: {
    nodes: [BEFORE, P, Y, { id: "last", x: 130, y: 104, name: "h_t−1" }, { id: "state", x: 330, y: 104, name: "h_t", phase: "state" }],
    edges: [["last", "state"], ["before", "state"], ["state", "p"], SAID],
  },
  none: {
    nodes: [BEFORE, P, Y, { id: "h", x: 110, y: 190, name: "h_1 … h_S", phase: "states", wide: 150 }, { id: "last", x: 200, y: 104, name: "s_t−1" }, { id: "state", x: 340, y: 104, name: "s_t", phase: "state" }],
    edges: [["h", "last"], ["last", "state"], ["before", "state"], ["state", "p"], SAID],
  },
};

/** Bahdanau's appendix reads the word out of the last state: s_t is for the next one. */
const EARLY: Drawing = {
  nodes: DRAWINGS.before.nodes,
  edges: [...DRAWINGS.before.edges.filter(([from]) => from !== "state"), ["last", "p"], ["context", "p"], ["before", "p"]],
};

const HEIGHTS: Partial<Record<Place, number>> = { none: 224, alone: 136 };

interface DiagramProps {
  place: Place;
  early: boolean; // the word is read out of the state before
  layers: number;
  reached: (phase: Phase) => boolean;
  open: Phase;
  onOpen: (phase: Phase) => void;
}

export function Diagram({ place, early, layers, reached, open, onOpen }: DiagramProps): JSX.Element {
  const { nodes, edges } = early ? EARLY : DRAWINGS[place];
  const by = new Map(nodes.map((node) => [node.id, node]));
  return (
    <svg class="diagram" viewBox={`0 0 552 ${HEIGHTS[place] ?? 276}`} role="group" aria-label="One step of the decoder">
      <defs>
        <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
          <path d="M1 1 L7 4 L1 7" fill="none" stroke="context-stroke" stroke-width="1.2" />
        </marker>
      </defs>
      {place === "layers" && layers > 1 ? (
        <g class="repeat">
          <rect x="60" y="74" width="366" height="130" rx="10" />
          <text x="438" y="198">× {layers}</text>
        </g>
      ) : null}
      {edges.map(([from, to]) => (
        <path key={`${from} ${to}`} class="edge" d={edge(by.get(from)!, by.get(to)!)} marker-end="url(#tip)" />
      ))}
      {nodes.map((node) => (
        <Part key={node.id} node={node} reached={!node.phase || reached(node.phase)} open={node.phase === open} onOpen={onOpen} />
      ))}
    </svg>
  );
}

interface PartProps {
  node: Node;
  reached: boolean;
  open: boolean;
  onOpen: (phase: Phase) => void;
}

function Part({ node, reached, open, onOpen }: PartProps): JSX.Element {
  const { x, y, name, phase } = node;
  const wide = node.wide ?? 46;
  const drawn = (
    <>
      <rect x={x - wide / 2} y={y - 17} width={wide} height={34} rx={17} />
      <Name x={x} y={y + 5} name={name} />
    </>
  );
  const kind = ["node", reached && "reached", open && "open"].filter(Boolean).join(" ");
  if (!phase) return <g class={kind}>{drawn}</g>;
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    onOpen(phase);
  };
  return (
    <g class={kind} tabindex={0} role="button" aria-label={NAMES[phase]} aria-pressed={open} onClick={() => onOpen(phase)} onKeyDown={press}>
      {drawn}
    </g>
  );
}

/** A name with what stands lower or higher in smaller letters. */
function Name({ x, y, name }: { x: number; y: number; name: string }): JSX.Element {
  const parts = name.split(/(_[^\s^)]+|\^[^\s_]+)/).filter(Boolean);
  let back = 0; // how far the line has left its base
  return (
    <text x={x} y={y} text-anchor="middle">
      {parts.map((part, i) => {
        const moved = part[0] === "_" ? 4 : part[0] === "^" ? -6 : 0;
        const by = moved - back;
        back = moved;
        return (
          <tspan key={i} dy={by} class={moved ? "small" : undefined}>
            {moved ? part.slice(1) : part}
          </tspan>
        );
      })}
    </text>
  );
}

/** From the border of one to the border of the other, bent where it goes both across and down. */
function edge(a: Node, b: Node): string {
  const half = (node: Node) => (node.wide ?? 46) / 2;
  if (a.y === b.y) return `M${a.x + half(a)} ${a.y} L${b.x - half(b) - 2} ${b.y}`;
  const down = b.y > a.y ? 1 : -1;
  if (Math.abs(a.x - b.x) < 4) return `M${a.x} ${a.y + down * 17} L${b.x} ${b.y - down * 19}`;
  const [x1, y1, x2, y2] = [a.x + Math.sign(b.x - a.x) * Math.min(half(a), 16), a.y + down * 16, b.x - Math.sign(b.x - a.x) * Math.min(half(b) - 6, 14), b.y - down * 18];
  return `M${x1} ${y1} C${x1} ${(y1 + y2) / 2 + down * 6}, ${x2} ${(y1 + y2) / 2 - down * 6}, ${x2} ${y2}`;
}
