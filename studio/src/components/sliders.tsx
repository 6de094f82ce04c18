// Weights as bars that can be dragged, or moved by the arrow keys; a line marks the unchanged weight.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useScrollHint } from "./scrolling";
import { fixed, percent, short, visible } from "../text";
import { Token } from "./tokens";

interface SlidersProps {
  tokens: string[];
  weights: number[];
  were: number[];
  pinned: Set<number>;
  masked: Set<number>;
  onMove: (source: number, weight: number) => void;
  onRelease: (source: number) => void;
}

export function Sliders({ tokens, ...props }: SlidersProps): JSX.Element {
  const frame = useScrollHint<HTMLDivElement>();
  const strongest = props.were.indexOf(Math.max(...props.were));
  useEffect(() => {
    const [box, bar] = [frame.current, frame.current?.children[strongest + 1]];
    if (!box || !(bar instanceof HTMLElement)) return;
    const at = bar.offsetLeft - box.offsetLeft; // scroll to the largest weight
    if (at < box.scrollLeft || at + bar.offsetWidth > box.scrollLeft + box.clientWidth) box.scrollLeft = at - box.clientWidth / 2;
  }, [strongest, tokens.length]);
  return (
    <div ref={frame} class="sliders" role="group" aria-label="Weights of this step">
      <div class="axis" aria-hidden="true">
        <span>1</span>
        <span>0</span>
      </div>
      {tokens.map((token, source) => (
        <Slider key={source} token={token} source={source} {...props} />
      ))}
    </div>
  );
}

interface SliderProps extends Omit<SlidersProps, "tokens"> {
  token: string;
  source: number;
}

const STEPS: Record<string, number> = { ArrowUp: 0.05, ArrowRight: 0.05, ArrowDown: -0.05, ArrowLeft: -0.05, PageUp: 0.2, PageDown: -0.2 };

function Slider({ token, source, weights, were, pinned, masked, onMove, onRelease }: SliderProps): JSX.Element {
  const track = useRef<HTMLDivElement>(null);
  const weight = weights[source] ?? 0;
  const fixedHere = pinned.has(source);
  const within = (value: number) => Math.round(Math.min(Math.max(value, 0), 1) * 1000) / 1000;
  const drag = (event: PointerEvent) => {
    if (!event.buttons && event.type !== "pointerdown") return;
    const box = track.current!.getBoundingClientRect();
    if (event.type === "pointerdown") track.current!.setPointerCapture(event.pointerId);
    onMove(source, within(1 - (event.clientY - box.top) / box.height));
  };
  const press = (event: KeyboardEvent) => {
    if (event.key in STEPS) onMove(source, within(weight + STEPS[event.key]));
    else if (event.key === "Home") onMove(source, 0);
    else if (event.key === "End") onMove(source, 1);
    else if (event.key === "Delete" || event.key === "Backspace") onRelease(source);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class={["slider", fixedHere && "pinned", masked.has(source) && "masked"].filter(Boolean).join(" ")}
      style={{ "--weight": `${weight * 100}%`, "--was": `${(were[source] ?? 0) * 100}%` }}
    >
      <div
        ref={track}
        class="track"
        role="slider"
        tabindex={0}
        aria-orientation="vertical"
        aria-label={`Weight on ${visible(token)}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(weight * 100)}
        aria-valuetext={`${percent(weight)}${fixedHere ? ", fixed" : ""}`}
        onPointerDown={drag}
        onPointerMove={drag}
        onDblClick={() => onRelease(source)}
        onKeyDown={press}
      >
        <span class="level" />
        {(were[source] ?? 0) >= 0.005 ? <span class="was" /> : null}
      </div>
      <span class="what">
        <Token of={short(token, 8)} />
      </span>
      <span class="figure">{weight >= 0.005 || fixedHere ? fixed(weight, 2) : ""}</span>
    </div>
  );
}
