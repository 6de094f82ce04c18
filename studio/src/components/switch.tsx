// A few choices side by side, one of them taken.
import type { JSX } from "preact";

interface SwitchProps<T extends string> {
  label: string;
  value: T;
  choices: [T, string][];
  onChoose: (value: T) => void;
}

export function Switch<T extends string>({ label, value, choices, onChoose }: SwitchProps<T>): JSX.Element {
  return (
    <div class="switch" role="group" aria-label={label}>
      {choices.map(([each, name]) => (
        <button type="button" key={each} aria-pressed={each === value} onClick={() => onChoose(each)}>
          {name}
        </button>
      ))}
    </div>
  );
}
