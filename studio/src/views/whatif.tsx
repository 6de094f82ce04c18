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
import { explore, here, isNothing, NOTHING, told, type TraceRequest } from "../explore/told";
import { typing } from "../keys";
import { beam, follow, model, text, trace as looked } from "../session";
import { shape, type Trace } from "../trace";

/** A search without and with the changes. */
export interface Pair {
  alone: Trace;
  told: Trace;
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
      set({ step: Math.min(Math.max((number("step") ?? 0) + by, 0), last) || null });
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <>
      <Ask />
      {found.value ? <Result pair={found.value} /> : isNothing(told.value) ? <Examples /> : <StartOver />}
    </>
  );
}

function wish(): TraceRequest | null {
  if (!model.value || !text.value.trim()) return null;
  return { model: model.value.name, text: text.value, beam: beam.value, n_best: 1, told: told.value };
}

async function ask(wished: TraceRequest, signal: AbortSignal): Promise<Pair> {
  const alone = await explore({ ...wished, told: NOTHING }, signal);
  return { alone, told: isNothing(wished.told) ? alone : await explore(wished, signal) };
}

/** As many as the longer of the two has. */
export const steps = ({ alone, told: then }: Pair): number => Math.max(...[alone, then].map(({ hypotheses }) => hypotheses[0].ids.length));

function Result({ pair }: { pair: Pair }): JSX.Element {
  const { layers } = shape(pair.alone);
  const step = Math.min(number("step") ?? 0, steps(pair) - 1);
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
      <p class="honest">
        If a change alters the translation, the model uses these weights here. It does not follow that the weights caused the unchanged
        translation: attention weights are evidence, not proof of cause{" "}
        <span class="quiet">(Jain and Wallace 2019; Wiegreffe and Pinter 2019)</span>.
      </p>
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
