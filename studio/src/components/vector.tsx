// A vector as a picture, a cell for each of its numbers, row after row: above zero in the color of links, below in that of errors.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { dark, signed } from "../color";
import { Numbers } from "./numbers";
import { Scale } from "./scale";

interface Props {
  values: number[];
  label: string;
  top: number; // the size of number with the strongest color
}

const ROW = 32; // cells, where there are so many
const SIDE = 12; // pixels of a cell
const LISTED = 8; // numbers in a row of the table

export function Vector({ values, label, top }: Props): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const night = dark.value;
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const [wide, high] = [Math.min(values.length, ROW), Math.ceil(values.length / ROW)];
  useEffect(() => {
    const brush = canvas.current?.getContext("2d");
    if (!brush) return;
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.clearRect(0, 0, wide * SIDE, high * SIDE);
    values.forEach((value, i) => {
      brush.fillStyle = signed(value / (top || 1), night);
      brush.fillRect((i % ROW) * SIDE, Math.floor(i / ROW) * SIDE, SIDE - 1, SIDE - 1);
    });
  }, [values, top, night, ratio]);
  const rows = Array.from({ length: Math.ceil(values.length / LISTED) }, (_, r) => ({
    head: <>{r * LISTED}</>,
    cells: values.slice(r * LISTED, (r + 1) * LISTED),
  }));
  return (
    <div class="vector">
      <canvas
        ref={canvas}
        width={wide * SIDE * ratio}
        height={high * SIDE * ratio}
        style={{ width: `${wide * SIDE}px` }}
        role="img"
        aria-label={`${label}: ${values.length} numbers`}
      />
      <Scale top={top} both name="value of each component" />
      <Numbers caption={label} corner="from" columns={rows[0].cells.map((_, c) => <>+ {c + 1}</>)} rows={rows} />
    </div>
  );
}
