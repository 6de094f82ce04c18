// A heat map of weights: a row per target token, a column per source token. SVG, which can be read and exported, up
// to 60 x 60 cells; canvas above, which stays quick. One cell is active: by pointing, or by the arrow keys.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { dark, heat, ink, text as paperInk } from "../color";
import { task } from "../session";
import { fixed, short, visible, width } from "../text";
import { Scale } from "./scale";
import { useScrollHint } from "./scrolling";

export interface Cell {
  row: number;
  column: number;
}

export interface MatrixProps {
  rows: string[];
  columns: string[];
  values: number[][];
  label: string;
  top?: number; // the value with the strongest color
  room?: number; // pixels that all cells of a row should share
  active?: Cell | null;
  onActive?: (cell: Cell | null) => void;
  onPick?: (cell: Cell) => void;
}

const DRAWN = 60; // cells to a side above which a canvas takes over
const NAME = 14; // pixels of the title of an axis
const PRINTED = 26; // pixels to a side from which a cell has room for its number

export function Matrix(props: MatrixProps): JSX.Element {
  const { rows, columns, label, active, onActive, onPick } = props;
  const move = (event: KeyboardEvent) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter" && active) onPick?.(active);
    if (!by || !onActive) return;
    event.preventDefault();
    event.stopPropagation(); // the arrows move the cell here, not the step
    const from = active ?? { row: by[0] < 0 ? rows.length : -1, column: by[1] < 0 ? columns.length : -1 };
    const within = (value: number, count: number) => Math.min(Math.max(value, 0), count - 1);
    onActive({ row: within(from.row + by[0], rows.length), column: within(from.column + by[1], columns.length) });
  };
  const large = rows.length > DRAWN || columns.length > DRAWN;
  const frame = useScrollHint<HTMLDivElement>();
  return (
    <>
    <div
      ref={frame}
      class="matrix"
      tabindex={0}
      role="application"
      aria-roledescription="heat map"
      aria-label={onActive ? `${label}. Arrow keys move from cell to cell.` : label}
      onKeyDown={move}
      onPointerLeave={() => onActive?.(null)}
    >
      {large ? <Painted {...props} /> : <Drawn {...props} />}
    </div>
    <Scale top={props.top ?? 1} name={`attention weight (columns: ${task.value.axes[0]}, rows: ${task.value.axes[1]})`} />
    </>
  );
}

const CONTROL = /^<.*>$/; // </s> and its like: written small, so it needs little room

/** Where things stand, in pixels: cells as large as a wide page allows, labels slanted where they would touch. */
function layout(rows: string[], columns: string[], room = Math.min(1080, innerWidth - 90)) {
  const side = Math.round(Math.min(38, Math.max(16, room / columns.length)));
  const widest = (labels: string[]) =>
    Math.max(...labels.map((each) => (CONTROL.test(each) ? 2.4 : Math.min(width(short(visible(each))), 16))), 1);
  const slanted = widest(columns.filter((each) => !CONTROL.test(each))) * 9 > side;
  const left = Math.max(widest(rows) * 9, 30) + 14 + NAME;
  const head = (slanted ? widest(columns) * 7.4 + 20 : 30) + NAME;
  const right = slanted ? widest(columns) * 4 : 6;
  return { side, left, head, slanted, width: left + columns.length * side + right, height: head + rows.length * side + 4 };
}

/** What a heat map beside another has room for, on a wide page and on a narrow one. */
export const beside = (): number => Math.min(460, innerWidth - 100);

/** The picture itself, also for export: everything it needs is in its attributes. */
export function Drawn({ rows, columns, values, top = 1, room, active, onActive, onPick, label }: MatrixProps): JSX.Element {
  const at = layout(rows, columns, room);
  const night = dark.value;
  const text = paperInk(night);
  return (
    <svg
      viewBox={`0 0 ${at.width} ${at.height}`}
      width={at.width}
      height={at.height}
      role="img"
      aria-label={label}
      font-family="Charter, 'Noto Serif', Georgia, serif"
      font-size="15"
      fill={text}
    >
      <g font-size="11" font-family="system-ui, 'Noto Sans', sans-serif" opacity={0.75}>
        <text x={at.left} y={11}>
          {task.value.axes[0]}
        </text>
        <text x={11} y={at.head + (rows.length * at.side) / 2} text-anchor="middle" transform={`rotate(-90 11 ${at.head + (rows.length * at.side) / 2})`}>
          {task.value.axes[1]}
        </text>
      </g>
      <rect x={at.left} y={at.head} width={columns.length * at.side} height={rows.length * at.side} fill={text} fill-opacity={0.05} stroke={text} stroke-opacity={0.14} />
      {columns.map((column, c) => {
        const x = at.left + (c + 0.5) * at.side;
        const y = at.head - 9;
        return (
          <text
            key={c}
            x={x}
            y={y}
            text-anchor={at.slanted ? "start" : "middle"}
            transform={at.slanted ? `rotate(-58 ${x} ${y})` : undefined}
            unicode-bidi="plaintext"
            font-size={CONTROL.test(column) ? 10 : undefined}
            opacity={active && active.column !== c ? 0.45 : 1}
          >
            {short(visible(column))}
          </text>
        );
      })}
      {rows.map((row, r) => (
        <text
          key={r}
          x={at.left - 10}
          y={at.head + (r + 0.5) * at.side + 5}
          text-anchor="end"
          unicode-bidi="plaintext"
          font-size={CONTROL.test(row) ? 10 : undefined}
          opacity={active && active.row !== r ? 0.45 : 1}
        >
          {short(visible(row))}
        </text>
      ))}
      {values.map((row, r) =>
        row.map((value, c) => {
          const on = active?.row === r && active.column === c;
          const x = at.left + c * at.side;
          const y = at.head + r * at.side;
          return (
            <g
              key={`${r} ${c}`}
              data-cell={`${r} ${c}`}
              onPointerEnter={() => onActive?.({ row: r, column: c })}
              onClick={() => onPick?.({ row: r, column: c })}
            >
              <rect
                x={x + 0.75}
                y={y + 0.75}
                width={at.side - 1.5}
                height={at.side - 1.5}
                rx={Math.min(3, at.side / 8)}
                fill={heat(value / top, night)}
                stroke={on ? text : "none"}
                stroke-width={on ? 1.5 : 0}
              />
              {at.side >= PRINTED && value >= 0.1 * top ? (
                <text
                  x={x + at.side / 2}
                  y={y + at.side / 2 + 3.6}
                  text-anchor="middle"
                  font-size="10.5"
                  font-family="system-ui, 'Noto Sans', sans-serif"
                  fill={ink(value / top, night)}
                  pointer-events="none"
                >
                  {value >= 0.995 ? "1" : fixed(value, 2).slice(1)}
                </text>
              ) : null}
            </g>
          );
        }),
      )}
    </svg>
  );
}

/** The same on a canvas: tens of thousands of cells are one picture. */
function Painted({ rows, columns, values, top = 1, active, onActive, onPick, label }: MatrixProps): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const side = (room: number, count: number) => Math.max(3, Math.min(16, Math.floor(room / count)));
  const [wide, high] = [side(1120, columns.length), side(900, rows.length)];
  const night = dark.value;
  const ratio = Math.min(devicePixelRatio || 1, 2);
  useEffect(() => {
    const brush = canvas.current?.getContext("2d");
    if (!brush) return;
    const gap = Math.min(wide, high) > 4 ? 0.5 : 0;
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.clearRect(0, 0, columns.length * wide, rows.length * high);
    values.forEach((row, r) =>
      row.forEach((value, c) => {
        brush.fillStyle = heat(value / top, night);
        brush.fillRect(c * wide, r * high, wide - gap, high - gap);
      }),
    );
    if (active) {
      brush.strokeStyle = paperInk(night);
      if (active.column >= 0) brush.strokeRect(active.column * wide, 0, wide, rows.length * high);
      brush.strokeRect(0, active.row * high, columns.length * wide, high);
    }
  }, [values, top, night, wide, high, active?.row, active?.column, ratio]);
  const cell = (event: PointerEvent | MouseEvent): Cell => {
    const box = canvas.current!.getBoundingClientRect();
    const place = (from: number, size: number, count: number) =>
      Math.min(count - 1, Math.max(0, Math.floor((from / size) * count)));
    return {
      row: place(event.clientY - box.top, box.height, rows.length),
      column: place(event.clientX - box.left, box.width, columns.length),
    };
  };
  return (
    <canvas
      ref={canvas}
      width={columns.length * wide * ratio}
      height={rows.length * high * ratio}
      style={{ width: `${columns.length * wide}px`, height: `${rows.length * high}px` }}
      role="img"
      aria-label={label}
      onPointerMove={(event) => onActive?.(cell(event))}
      onClick={(event) => onPick?.(cell(event))}
    />
  );
}
