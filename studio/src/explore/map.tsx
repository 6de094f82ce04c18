// The attention of one hypothesis as a heat map beside others, with its numbers; a click selects a step.
import type { JSX } from "preact";
import { set } from "../address";
import { beside, Matrix } from "../components/matrix";
import { Numbers } from "../components/numbers";

interface MapProps {
  label: string;
  answer: string[];
  source: string[];
  rows: number[][]; // (T, S)
  step: number;
  top: number; // the weight with the strongest color
}

export const Map = ({ label, answer, source, rows, step, top }: MapProps): JSX.Element => (
  <>
    <Matrix
      rows={answer}
      columns={source}
      values={rows}
      room={beside()}
      top={top}
      label={label}
      active={step < answer.length ? { row: step, column: -1 } : null}
      onPick={({ row }) => set({ step: row })}
    />
    <Numbers caption={label} corner="token" columns={source} rows={answer.map((head, t) => ({ head, cells: rows[t] }))} />
  </>
);
