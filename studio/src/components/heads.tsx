// Choosing a layer and a head, or the mean over them; nothing where there is nothing to choose.
import type { JSX } from "preact";
import { number, set } from "../address";
import { parts } from "../session";

export function Heads(): JSX.Element | null {
  const { layers, heads } = parts.value;
  if (layers * heads < 2) return null;
  return (
    <>
      {layers > 1 ? <Choice name="layer" count={layers} /> : null}
      {heads > 1 ? <Choice name="head" count={heads} /> : null}
    </>
  );
}

function Choice({ name, count }: { name: "layer" | "head"; count: number }): JSX.Element {
  const given = number(name);
  return (
    <label class="field">
      <span>{name === "layer" ? "Layer" : "Head"}</span>
      <select
        value={given === null || given >= count ? "" : String(given)}
        onChange={(event) => set({ [name]: event.currentTarget.value })}
      >
        <option value="">mean of {count}</option>
        {Array.from({ length: count }, (_, i) => (
          <option key={i} value={String(i)}>
            {i + 1}
          </option>
        ))}
      </select>
    </label>
  );
}
