// The table behind every chart: its numbers, also for screen readers.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useScrollHint } from "./scrolling";
import { fixed } from "../text";
import { Token } from "./tokens";

/** A token; or plain words, as an element. */
type Shown = string | JSX.Element;

export interface Table {
  caption: string;
  columns: Shown[];
  rows: { head: Shown; cells: (Shown | number | null)[] }[];
  corner?: string;
  digits?: number;
}

/** Closed at first, and created when it is opened: a long sentence has tens of thousands of cells. */
export function Numbers(table: Table): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <details class="numbers" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Numbers: {table.caption}</summary>
      {open ? <Grid {...table} /> : null}
    </details>
  );
}

const shown = (each: Shown): JSX.Element => (typeof each === "string" ? <Token of={each} /> : each);

function Grid({ caption, columns, rows, corner = "", digits = 3 }: Table): JSX.Element {
  const frame = useScrollHint<HTMLDivElement>();
  return (
    <div ref={frame} class="scrolls" tabindex={0} role="region" aria-label={`Numbers: ${caption}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">{corner}</th>
            {columns.map((column, c) => (
              <th scope="col" key={c}>
                {shown(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ head, cells }, r) => (
            <tr key={r}>
              <th scope="row">
                {shown(head)}
              </th>
              {cells.map((cell, c) => (
                <td key={c}>{typeof cell === "number" || cell === null ? fixed(cell, digits) : shown(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
