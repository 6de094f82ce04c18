// Example sentences on an empty page, where the data set of the model is known.
import type { JSX } from "preact";
import { set } from "./address";
import { model, problem, task, text } from "./session";

export function Examples(): JSX.Element | null {
  if (text.value.trim() || problem.value || !model.value) return null;
  const texts = task.value.examples[model.value.data ?? ""] ?? [];
  return (
    <p class="empty">
      {task.value.hint}
      {texts.length ? " For example " : ""}
      {texts.map((each, i) => (
        <span key={each}>
          {i ? (i === texts.length - 1 ? " or " : ", ") : ""}
          <button type="button" class="plain" onClick={() => set({ text: each })}>
            <bdi dir="auto">{each}</bdi>
          </button>
        </span>
      ))}
      {texts.length ? "." : ""}
    </p>
  );
}
