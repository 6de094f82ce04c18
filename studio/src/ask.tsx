// What most views ask for: a text, with a model and a search.
import type { JSX } from "preact";
import type { FunctionComponent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { set } from "./address";
import { beam, beamKey, busy, enclosed, model, models, problem, rankKey, sampling, search, task, text } from "./session";
import type { Search } from "./task";

const SETTINGS: Record<Search, FunctionComponent> = { beam: BeamChoice, sampling: SamplingChoice, none: () => null };

/** The whole question; `bare` is the sentence alone. */
export function Ask({ bare = false }: { bare?: boolean }): JSX.Element {
  const Settings = SETTINGS[search.value];
  return (
    <section class="ask" aria-label="Sentence">
      {enclosed ? <p class={enclosed.trace.source.length > LONG ? "sentence long" : "sentence"}><bdi dir="auto">{enclosed.trace.source}</bdi></p> : <Sentence />}
      {enclosed || bare ? null : (
        <div class="settings">
          <ModelChoice />
          <Settings />
          <span class={busy.value ? "busy on" : "busy"} role="status">
            {busy.value ? task.value.busy : ""}
          </span>
        </div>
      )}
      {problem.value ? <p class="problem" role="alert">{problem.value}</p> : null}
    </section>
  );
}

const LONG = 120; // letters from which a sentence is set smaller

export function Sentence(): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null);
  const shown = task.value.parts ? text.value.replace(/\t/g, "\n") : text.value;
  useEffect(() => {
    const box = area.current;
    if (!box) return;
    box.style.height = "auto"; // as high as what is written in it
    box.style.height = `${box.scrollHeight}px`;
  }, [shown]);
  return (
    <textarea
      ref={area}
      class={text.value.length > LONG ? "sentence long" : "sentence"}
      rows={1}
      dir="auto"
      spellcheck={false}
      autocomplete="off"
      aria-label={task.value.label}
      placeholder={task.value.placeholder}
      value={shown}
      onInput={(event) => set({ text: joined(event.currentTarget.value), step: null, rank: null, "beam.rank": null })}
    />
  );
}

/** One line; the last line of a passage is its question, which follows a TAB. */
function joined(typed: string): string {
  const last = task.value.parts ? typed.lastIndexOf("\n") : -1;
  const line = (part: string): string => part.replace(/\n/g, " ");
  return last < 0 ? line(typed) : `${line(typed.slice(0, last))}\t${typed.slice(last + 1)}`;
}

const FORGOTTEN = { layer: null, head: null, step: null, rank: null, "beam.rank": null };
const CHANGES = { prefix: null, end: null, mask: null, pin: null }; // of What if and Beam: tokens of another task are others

function choose(name: string): void {
  const other = models.value.find((each) => each.name === name)?.task !== model.value?.task;
  set({ model: name, ...FORGOTTEN, ...(other ? CHANGES : {}) });
}

export function ModelChoice(): JSX.Element | null {
  if (!model.value) return null;
  return (
    <label class="field">
      <span>Model</span>
      <select
        value={model.value.name}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {models.value.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

interface SettingProps {
  name: keyof typeof sampling.value;
  title: string;
  hint?: string;
  min: number;
  max: number;
  step: number;
}

/** A number of the address. */
const Setting = ({ name, title, hint, ...bounds }: SettingProps): JSX.Element => (
  <label class="field" title={hint}>
    <span>{title}</span>
    <input
      type="number"
      {...bounds}
      value={sampling.value[name]}
      onChange={(event) => set({ [name]: event.currentTarget.value, step: null, rank: null })}
    />
  </label>
);

/** How a language model draws the words that it adds. */
function SamplingChoice(): JSX.Element {
  return (
    <>
      <Setting name="temperature" title="Temperature" min={0.1} max={5} step={0.1} />
      <Setting name="top_k" title="Top k" hint="Draw from the k most probable tokens; 0: from all." min={0} max={1000} step={1} />
      <Setting name="top_p" title="Top p" hint="Draw from the most probable tokens that add up to p." min={0} max={1} step={0.05} />
      <Setting name="length" title="Tokens" min={1} max={400} step={1} />
      <button type="button" class="plain" onClick={() => set({ seed: sampling.value.seed + 1, step: null })}>
        Another sample
      </button>
    </>
  );
}

export function BeamChoice(): JSX.Element {
  return (
    <label class="field">
      <span>Search</span>
      <select
        value={String(beam.value)}
        onChange={(event) => set({ [beamKey.value]: event.currentTarget.value, step: null, [rankKey.value]: null })}
      >
        {[1, 2, 3, 4, 5, 8, 10].map((size) => (
          <option key={size} value={String(size)}>
            {size === 1 ? "greedy" : `beam ${size}`}
          </option>
        ))}
      </select>
    </label>
  );
}
