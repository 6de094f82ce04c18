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
  top: number; // the weight with the strongest color
}

const LONG = 60; // source tokens from which weights are so small that they are colored by the strongest of them

/** The weight with the strongest color for maps that are compared. */
export const strongest = (maps: number[][][]): number =>
  (maps[0]?.[0]?.length ?? 0) > LONG ? maps.flat(2).reduce((most, each) => Math.max(most, each), 0.05) : 1;

export const Map = ({ label, said, source, rows, step, top }: MapProps): JSX.Element => (
  <>
    <Matrix
      rows={said}
      columns={source}
      values={rows}
      room={beside()}
      top={top}
      label={label}
      active={step < said.length ? { row: step, column: -1 } : null}
      onPick={({ row }) => set({ step: row || null })}
    />
    <Numbers caption={label} corner="token" columns={source} rows={said.map((head, t) => ({ head, cells: rows[t] }))} />
  </>
);
