// Which step: a slider, the same wherever one looks at a step.
import type { JSX } from "preact";
import { set } from "../address";

interface ScrubberProps {
  title: string;
  label: string;
  step: number;
  last: number;
}

export function Scrubber({ title, label, step, last }: ScrubberProps): JSX.Element {
  return (
    <div class="transport">
      <h2>{title}</h2>
      <input
        type="range"
        min={0}
        max={last}
        value={step}
        aria-label={label}
        aria-valuetext={`Step ${step + 1} of ${last + 1}`}
        onInput={(event) => set({ step: Number(event.currentTarget.value) })}
      />
      <span class="figures quiet">
        {step + 1} / {last + 1}
      </span>
    </div>
  );
}
