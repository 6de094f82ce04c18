// What is seen, taken away: as a picture, as numbers, as links.
import { type ComponentChild, render } from "preact";

export function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A picture as a file of its own: all it needs is in its attributes. */
export function svg(picture: ComponentChild, paper: string): string {
  const box = document.createElement("div");
  render(picture, box);
  const root = box.querySelector("svg")!;
  root.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  back.setAttribute("width", "100%");
  back.setAttribute("height", "100%");
  back.setAttribute("fill", paper);
  root.prepend(back);
  const text = new XMLSerializer().serializeToString(root);
  render(null, box);
  return text;
}

const LARGEST = 8000; // pixels to a side that every browser can paint

/** The same as a bitmap, twice as fine where there is room. */
export async function png(picture: string): Promise<Blob> {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" }));
  await image.decode();
  const scale = Math.min(2, LARGEST / Math.max(image.width, image.height));
  const canvas = document.createElement("canvas");
  canvas.width = image.width * scale;
  canvas.height = image.height * scale;
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture")))));
}

const quoted = (cell: string | number): string => (typeof cell === "number" ? String(cell) : `"${cell.replaceAll('"', '""')}"`);

/** A matrix as comma-separated values: a row for each row, labels first. */
export function csv(columns: string[], rows: string[], values: number[][]): string {
  const lines = [["", ...columns], ...rows.map((row, r) => [row, ...values[r]])];
  return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

/** Pharaoh's i-j, source-target from 0: for each target the source it looked at most; a token that was not generated has none. */
export function pharaoh(values: number[][], sources: number, targets: number): string {
  const links = values.slice(0, targets).map((row, t) => {
    const best = Math.max(...row);
    return { s: row.indexOf(best), t, best };
  });
  const kept = links.filter(({ s, best }) => best > 0 && s < sources).sort((a, b) => a.s - b.s || a.t - b.t);
  return kept.map(({ s, t }) => `${s}-${t}`).join(" ") + "\n";
}
