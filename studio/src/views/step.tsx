// Step: encoder states -> scores -> weights -> context -> candidates -> token, one step of the decoder at a time.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { set } from "../address";
import { Ask } from "../ask";
import { Diagram } from "../components/diagram";
import { Numbers } from "../components/numbers";
import { Rank } from "../components/rank";
import { Chip, Line, runsOn } from "../components/tokens";
import { Examples } from "../examples";
import { typing } from "../keys";
import { NAMES, type Plan } from "../model";
import { chosen, model, moments, parts, trace } from "../session";
import { percent } from "../text";
import { Chart } from "../step/chart";
import { Glance } from "../step/heads";
import { description, energies, moment, open, opened, phase, reached, t, weights } from "../step/moment";
import { beating, key, playing, to, toggle } from "../step/playing";
import { Quantity } from "../step/quantity";
import { Words } from "../step/words";

export function Step(): JSX.Element {
  useEffect(() => {
    const stop = beating();
    const press = (event: KeyboardEvent) => {
      if (!typing(event) && moments.peek().length && key(event)) event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => {
      stop();
      playing.value = false;
      removeEventListener("keydown", press);
    };
  }, []);
  return (
    <>
      <Ask />
      {moment.value && description.value ? <Stage plan={description.value} /> : <Examples />}
    </>
  );
}

function Stage({ plan }: { plan: Plan }): JSX.Element {
  return (
    <>
      <Translation />
      <Transport plan={plan} />
      {(trace.value?.hypotheses.length ?? 0) > 1 ? (
        <div class="bar">
          <Rank />
        </div>
      ) : null}
      <Glance />
      <div class="stage">
        <div>
          <Chart />
          <StepNumbers plan={plan} />
          <p class="keys">
            <kbd>Space</kbd> plays or pauses. <kbd>←</kbd> <kbd>→</kbd> go to the previous or next step, with <kbd>Shift</kbd> to the
            previous or next phase, <kbd>Home</kbd> and <kbd>End</kbd> to the first or last step. Click a number to see its formula.
          </p>
        </div>
        <div class="aside">
          <Words />
          <Quantity />
          <figure>
            <Diagram
              place={plan.place}
              early={model.value?.settings.kind === "bahdanau" && model.value.settings.readout !== "current"}
              layers={parts.value.layers}
              reached={reached}
              open={opened.value.phase}
              onOpen={(each) => open(each)}
            />
            <figcaption>
              {plan.saying} <span class="quiet">{plan.paper}</span>
            </figcaption>
          </figure>
        </div>
      </div>
    </>
  );
}

/** What has been said so far, what is being said, what is to come. */
function Translation(): JSX.Element {
  const said = chosen.value!;
  return (
    <Line label="Translation" close={runsOn(said.tokens)}>
      {said.tokens.map((token, i) => (
        <Chip
          key={i}
          token={token}
          current={i === t.value}
          faded={i > t.value}
          confidence={Math.exp(said.token_scores[i])}
          label={`Step ${i + 1}: ${token}, ${percent(Math.exp(said.token_scores[i]))}`}
          onPick={() => to(i)}
        />
      ))}
    </Line>
  );
}

function Transport({ plan }: { plan: Plan }): JSX.Element {
  const last = moments.value.length - 1;
  return (
    <div class="transport">
      <button type="button" class="play" aria-label={playing.value ? "Pause" : "Play"} title="Space" onClick={toggle}>
        <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
          {playing.value ? <path d="M5 3h4v14H5z M11 3h4v14h-4z" /> : <path d="M5 2.5v15l12-7.5z" />}
        </svg>
      </button>
      <input
        type="range"
        min={0}
        max={last}
        value={t.value}
        aria-label="Step"
        aria-valuetext={`Step ${t.value + 1} of ${last + 1}: ${moment.value!.token}`}
        onInput={(event) => {
          playing.value = false;
          to(Number(event.currentTarget.value));
        }}
      />
      <span class="figures quiet">
        {t.value + 1} / {last + 1}
      </span>
      <ol class="phases" aria-label="Within the step">
        {plan.phases.map((each) => (
          <li key={each}>
            <button type="button" aria-pressed={phase.value === each} onClick={() => set({ phase: phase.value === each ? null : each, open: null })}>
              {NAMES[each]}
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

function StepNumbers({ plan }: { plan: Plan }): JSX.Element {
  const tokens = trace.value!.source_tokens;
  const none = plan.place === "none";
  return (
    <>
      {none ? null : (
        <Numbers
          caption={`score and weight of each source token in step ${t.value + 1}`}
          corner="source"
          columns={["score", "weight"]}
          rows={tokens.map((head, j) => ({ head, cells: [energies.value ? energies.value[j] : "none (mean of heads)", weights.value[j]] }))}
        />
      )}
    </>
  );
}
