// Colors of weights, links and errors: those of regarde/visualize/style.py. Light or dark: the system's, or as chosen.
import { computed, signal } from "@preact/signals";
import colors from "./palette.json";

export type Scheme = "auto" | "light" | "dark";
const KEY = "regarde-scheme";

function kept(): Scheme {
  try {
    const given = localStorage.getItem(KEY);
    return given === "light" || given === "dark" ? given : "auto";
  } catch {
    return "auto"; // a page opened from a file may have no storage
  }
}

const preferred = matchMedia("(prefers-color-scheme: dark)");
const system = signal(preferred.matches);
preferred.addEventListener("change", () => (system.value = preferred.matches));

export const scheme = signal<Scheme>(kept());
export const dark = computed(() => (scheme.value === "auto" ? system.value : scheme.value === "dark"));

export function choose(next: Scheme): void {
  scheme.value = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // then it lasts as long as the page
  }
}

const still = matchMedia("(prefers-reduced-motion: reduce)");
export const motionless = signal(still.matches);
still.addEventListener("change", () => (motionless.value = still.matches));

const palette = (night: boolean) => (night ? colors.dark : colors.light);

/** The upper end of the scale, as in regarde/visualize/heatmap.py: the least of …, 0.1, 0.2, 0.5, 1 that no weight exceeds. */
export function top(maps: number[][][]): number {
  const peak = maps.reduce((most, map) => map.reduce((so, row) => Math.max(so, ...row), most), 0) * (1 - 1e-4);
  if (peak < 1e-6) return 1;
  const power = 10 ** Math.floor(Math.log10(peak));
  return Number(([1, 2, 5, 10].find((each) => peak <= each * power)! * power).toPrecision(3));
}

/** The color of a weight at a position in 0…1 of the scale. */
export function heat(position: number, night = dark.value): string {
  const { weights } = palette(night);
  const at = Math.min(Math.max(position, 0), 1) * (weights.length - 1);
  const below = Math.min(Math.floor(at), weights.length - 2);
  return mixed(weights[below], weights[below + 1], at - below);
}

/** The color of a number in -1…1 of its scale: from zero towards the color of links above, of errors below. */
export function signed(position: number, night = dark.value): string {
  const { weights, link, error } = palette(night);
  return mixed(weights[0], position < 0 ? error : link, Math.min(Math.abs(position), 1));
}

/** The color of a number on `heat(position)`. */
export function ink(position: number, night = dark.value): string {
  const { numbers } = palette(night);
  return numbers[Math.round(Math.min(Math.max(position, 0), 1) * (numbers.length - 1))];
}

/** The colors of pictures that can be saved: their paper, text and links. */
export const paper = (night: boolean): string => palette(night).paper;
export const text = (night: boolean): string => palette(night).ink;
export const line = (night: boolean): string => palette(night).link;

/** The dashes of curve number `index`, from 0. */
export const dashes = (index: number): string => colors.dashes[index % colors.dashes.length].map((each) => each * 1.8).join(" ");

function mixed(from: string, to: string, share: number): string {
  const channel = (color: string, i: number) => parseInt(color.slice(2 * i + 1, 2 * i + 3), 16);
  const between = (i: number) => Math.round(channel(from, i) + (channel(to, i) - channel(from, i)) * share);
  return "#" + [0, 1, 2].map((i) => between(i).toString(16).padStart(2, "0")).join("");
}
