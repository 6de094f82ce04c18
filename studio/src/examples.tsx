// Example sentences on an empty page, where the data set of the model is known.
import type { JSX } from "preact";
import { set } from "./address";
import { model, problem, text } from "./session";

const DATES = ["mercredi 17 décembre 1969", "2024年2月29日", "٣ مارس ١٩٩٩", "7. März 2023"];

export function Examples(): JSX.Element | null {
  if (text.value.trim() || problem.value || !model.value) return null;
  const dates = model.value.data === "dates";
  return (
    <p class="empty">
      Type a sentence to see what the model attends to.
      {dates ? " For example " : ""}
      {dates
        ? DATES.map((each, i) => (
            <span key={each}>
              {i ? (i === DATES.length - 1 ? " or " : ", ") : ""}
              <button type="button" class="plain" onClick={() => set({ text: each })}>
                <bdi dir="auto">{each}</bdi>
              </button>
            </span>
          ))
        : null}
      {dates ? "." : ""}
    </p>
  );
}
