// One step and what can be changed in it: its token and its weights.
import type { JSX } from "preact";
import { Numbers } from "../components/numbers";
import { Scrubber } from "../components/scrubber";
import { Sliders } from "../components/sliders";
import { Token } from "../components/tokens";
import { task } from "../session";
import { percent, visible } from "../text";
import { type Candidate, END, type Moment, sayable, taken, type Trace, way } from "../trace";
import { type Pair, steps } from "../views/whatif";
import { here, samePart, change, changes, type Weight } from "./search";
import { moved, pinned } from "./weights";

const BESIDE = 14; // source tokens for which there is room beside the candidates

interface ControlsProps {
  pair: Pair;
  step: number;
  attentive: boolean;
}

export function StepControls({ pair, step, attentive }: ControlsProps): JSX.Element {
  const last = steps(pair) - 1;
  const now = moment(pair.changed, step);
  return (
    <section class="controls">
      <Scrubber title={task.value.paired ? `Step ${step + 1}: ${visible(pair.changed.source_tokens[step] ?? "")}` : `Step ${step + 1}`} label="Step" step={step} last={last} />
      {now ? (
        <div class={pair.alone.source_tokens.length > BESIDE ? "hands apart" : "hands"}>
          {attentive ? <Weights pair={pair} step={step} now={now} /> : null}
          <Tokens pair={pair} step={step} now={now} />
        </div>
      ) : (
        <p class="quiet">It ended before this step.</p>
      )}
    </section>
  );
}

/** What the best hypothesis does at a step; nothing after its end. */
function moment(trace: Trace, step: number): Moment | undefined {
  return way(trace, trace.hypotheses[0])[step];
}

function Weights({ pair, step, now }: { pair: Pair; step: number; now: Moment }): JSX.Element {
  const tokens = pair.alone.source_tokens;
  const mine = (each: Weight) => each.step === step && samePart(each, here.peek());
  const pins = new Map(changes.value.weights.filter(mine).map(({ source, weight }) => [source, weight]));
  const masked = new Set(changes.value.masks.filter((mask) => samePart(mask, here.value)).map(({ source }) => source));
  const were = taken((moment(pair.alone, step) ?? now).branch.weights, here.value);
  const weights = pinned(taken(now.branch.weights, here.value), pins); // at once, before the answer arrives
  const move = (next: Map<number, number>) => {
    const others = changes.peek().weights.filter((each) => !mine(each));
    change({ weights: [...others, ...[...next].map(([source, weight]) => ({ step, source, weight, ...here.peek() }))] });
  };
  return (
    <section>
      <h3>Attention weights (0 to 1). Drag one to change it; the others are scaled so that all add up to 1. A line marks the unchanged weight.</h3>
      <Sliders
        tokens={tokens}
        weights={weights}
        were={were}
        pinned={new Set(pins.keys())}
        masked={masked}
        onMove={(source, weight) => move(moved(pins, source, weight))}
        onRelease={(source) => move(new Map([...pins].filter(([s]) => s !== source)))}
      />
      <Numbers
        caption={`weights of step ${step + 1}, unchanged and changed`}
        corner={task.value.axes[0]}
        columns={[<>unchanged</>, <>changed</>]}
        rows={tokens.map((head, s) => ({ head, cells: [were[s], weights[s]] }))}
      />
    </section>
  );
}

function Tokens({ pair, step, now }: { pair: Pair; step: number; now: Moment }): JSX.Element {
  const { prefix, end } = changes.value;
  const forced = step < prefix.length || (end && step === prefix.length);
  const listed: Candidate[] = forced ? (moment(pair.alone, step)?.branch.candidates ?? now.branch.candidates) : now.branch.candidates;
  const beginning = pair.changed.hypotheses[0].ids.slice(0, step);
  const may = (id: number) => beginning.every(sayable) && (sayable(id) || id === END);
  const force = (id: number) => change(id === END ? { prefix: beginning, end: true } : { prefix: [...beginning, id], end: false });
  return (
    <section class="words">
      <h3>{task.value.candidates} and their probability. Click one to force it.</h3>
      <ol>
        {listed.map((each) => {
          const p = Math.exp(each.log_probability ?? -Infinity);
          return (
            <li key={each.id} class={each.id === now.id ? "chosen" : undefined}>
              <button
                type="button"
                aria-pressed={forced && each.id === now.id}
                aria-label={`Force ${visible(each.token)}, ${percent(p)}`}
                disabled={!may(each.id)}
                onClick={() => force(each.id)}
              >
                <span class="what">
                  <Token of={each.token} />
                </span>
                <span class="gauge" style={{ "--size": `${p * 100}%` }} />
                <span class="figure">{percent(p)}</span>
              </button>
            </li>
          );
        })}
      </ol>
      {forced ? <p class="quiet">Candidates of the unchanged search.</p> : null}
    </section>
  );
}
