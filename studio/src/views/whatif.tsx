// What if: force a token, hide a source token or set a weight; the unchanged and the changed translation side by side.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { number, set } from "../address";
import { Ask } from "../ask";
import { Heads } from "../components/heads";
import { Examples } from "../examples";
import { Changes, StartOver } from "../explore/changes";
import { Outcome } from "../explore/outcome";
import { SourceLine } from "../explore/source";
import { StepControls } from "../explore/controls";
import { explore, here, isNothing, NOTHING, changes, type TraceRequest } from "../explore/search";
import { typing } from "../keys";
import { beam, bounded, follow, given, model, task, text, trace as looked } from "../session";
import { shape, type Trace } from "../trace";

/** A search without and with the changes. */
export interface Pair {
  alone: Trace;
  changed: Trace;
}

export function WhatIf(): JSX.Element {
  const found = useSignal<Pair | null>(null);
  useEffect(
    () =>
      follow(wish, ask, (answer) => {
        if (answer) looked.value = answer.alone; // layers and heads are counted there
        found.value = answer;
      }),
    [],
  );
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || typing(event) || !found.peek()) return;
      const last = steps(found.peek()!) - 1;
      set({ step: Math.min(Math.max((number("step") ?? start(found.peek()!)) + by, 0), last) });
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <>
      <Ask />
      {found.value ? <Result pair={found.value} /> : isNothing(changes.value) ? <Examples /> : <StartOver />}
    </>
  );
}

const WIDTH = 4; // for tags: the best tagging is found as a whole, which leaves no candidates to choose from

function wish(): TraceRequest | null {
  if (!model.value || !given.value) return null;
  return { model: model.value.name, text: text.value, beam: task.value.paired ? WIDTH : beam.value, n_best: 1, changes: changes.value, ...bounded() };
}

async function ask(request: TraceRequest, signal: AbortSignal): Promise<Pair> {
  const alone = await explore({ ...request, changes: NOTHING }, signal);
  return { alone, changed: isNothing(request.changes) ? alone : await explore(request, signal) };
}

/** The step at first: the first that is not given. */
const start = ({ alone }: Pair): number => alone.prompt_tokens ?? 0;

/** As many as the longer of the two has. */
export const steps = ({ alone, changed }: Pair): number => Math.max(...[alone, changed].map(({ hypotheses }) => hypotheses[0].ids.length));

function Result({ pair }: { pair: Pair }): JSX.Element {
  const layers = task.value.changes ? shape(pair.alone).layers : 0;
  const step = Math.min(number("step") ?? start(pair), steps(pair) - 1);
  return (
    <>
      <Changes pair={pair} />
      <Outcome pair={pair} step={step} />
      {layers ? (
        <>
          <SourceLine trace={pair.alone} />
          <div class="bar">
            <Heads />
            <Where />
          </div>
        </>
      ) : null}
      <StepControls pair={pair} step={step} attentive={layers > 0} />
      {layers ? (
        <p class="honest">
          If a change alters the {task.value.answer}, the model uses these weights here. It does not follow that the weights caused the
          unchanged {task.value.answer}: attention weights are evidence, not proof of cause{" "}
          <span class="quiet">(Jain and Wallace 2019; Wiegreffe and Pinter 2019)</span>.
        </p>
      ) : null}
    </>
  );
}

/** For which layers and heads a new change will hold, where there are several. */
function Where(): JSX.Element | null {
  const { layer, head } = here.value;
  const { layers, heads } = shape(looked.value!);
  if (layers * heads < 2) return null;
  const of = (name: string, at: number | null) => (at === null ? `all ${name}s` : `${name} ${at + 1}`);
  return (
    <span class="quiet">
      A change applies to {of("layer", layer)} and {of("head", head)}.
    </span>
  );
}
