// Where one hypothesis looked, as a heat map beside others, with its numbers; a click goes to a step.
import type { JSX } from "preact";
import { set } from "../address";
import { beside, Matrix } from "../components/matrix";
import { Numbers } from "../components/numbers";

interface MapProps {
  label: string;
  said: string[];
  source: string[];
  rows: number[][]; // (T, S)
  step: number;
}

export const Map = ({ label, said, source, rows, step }: MapProps): JSX.Element => (
  <>
    <Matrix
      rows={said}
      columns={source}
      values={rows}
      room={beside()}
      label={label}
      active={step < said.length ? { row: step, column: -1 } : null}
      onPick={({ row }) => set({ step: row || null })}
    />
    <Numbers caption={label} corner="token" columns={source} rows={said.map((head, t) => ({ head, cells: rows[t] }))} />
  </>
);
