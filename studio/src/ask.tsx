// What most views translate: a sentence, with a model and a search.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { set } from "./address";
import { beam, beamKey, busy, enclosed, model, models, problem, rankKey, text } from "./session";

/** The whole question; `bare` is the sentence alone. */
export function Ask({ bare = false }: { bare?: boolean }): JSX.Element {
  return (
    <section class="ask" aria-label="Sentence">
      {enclosed ? <p class={enclosed.trace.source.length > LONG ? "sentence long" : "sentence"}><bdi dir="auto">{enclosed.trace.source}</bdi></p> : <Sentence />}
      {enclosed || bare ? null : (
        <div class="settings">
          <ModelChoice />
          <BeamChoice />
          <span class={busy.value ? "busy on" : "busy"} role="status">
            {busy.value ? "translating" : ""}
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
  useEffect(() => {
    const box = area.current;
    if (!box) return;
    box.style.height = "auto"; // as high as what is written in it
    box.style.height = `${box.scrollHeight}px`;
  }, [text.value]);
  return (
    <textarea
      ref={area}
      class={text.value.length > LONG ? "sentence long" : "sentence"}
      rows={1}
      dir="auto"
      spellcheck={false}
      autocomplete="off"
      aria-label="Sentence to translate"
      placeholder="Type a sentence"
      value={text.value}
      onInput={(event) => set({ text: event.currentTarget.value.replace(/\n/g, " "), step: null, rank: null, "beam.rank": null })}
    />
  );
}

export function ModelChoice(): JSX.Element | null {
  if (!model.value) return null;
  return (
    <label class="field">
      <span>Model</span>
      <select
        value={model.value.name}
        onChange={(event) => set({ model: event.currentTarget.value, layer: null, head: null, step: null, rank: null, "beam.rank": null })}
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
