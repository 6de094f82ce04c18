// Which of the translations that a beam has found.
import type { JSX } from "preact";
import { number, set } from "../address";
import { task, trace } from "../session";
import { capital } from "../text";

export function Rank(): JSX.Element | null {
  const all = trace.value?.hypotheses ?? [];
  if (all.length < 2) return null;
  return (
    <label class="field">
      <span>{capital(task.value.answer)}</span>
      <select
        value={String(number("rank") ?? 0)}
        onChange={(event) => set({ rank: event.currentTarget.value === "0" ? null : event.currentTarget.value, step: null, phase: null })}
      >
        {all.map(({ text }, r) => (
          <option key={r} value={String(r)} dir="auto">
            {r + 1}. {text}
          </option>
        ))}
      </select>
    </label>
  );
}
