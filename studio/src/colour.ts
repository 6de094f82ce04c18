// Weights -> colours: from paper to the darkest ink (by night from the dark to the brightest), so that lightness alone
// tells the order, in print and to the colour-blind. The scheme is the reader's own unless they choose.
import { computed, signal } from "@preact/signals";

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

const asked = matchMedia("(prefers-color-scheme: dark)");
const system = signal(asked.matches);
asked.addEventListener("change", () => (system.value = asked.matches));

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

type Colour = readonly [number, number, number];
const LIGHT: Colour[] = [
  [244, 240, 232], [250, 222, 205], [244, 182, 154], [228, 128, 97], [196, 71, 45], [143, 36, 24], [84, 16, 14],
];
const DARK: Colour[] = [
  [33, 30, 28], [66, 31, 24], [112, 43, 30], [168, 64, 42], [221, 106, 75], [247, 163, 131], [255, 226, 210],
];

const LIGHT_COLD: Colour[] = [
  [244, 240, 232], [212, 224, 236], [160, 192, 222], [103, 151, 199], [52, 104, 163], [26, 62, 114], [12, 30, 64],
];
const DARK_COLD: Colour[] = [
  [33, 30, 28], [27, 39, 56], [34, 60, 94], [50, 91, 142], [88, 138, 196], [148, 187, 230], [217, 233, 250],
];

/** The colour at a position in 0…1. */
export const heat = (position: number, night = dark.value): string => mixed(night ? DARK : LIGHT, position);

/** The colour at a position in -1…1: as far from zero, as dark (by night, as bright) on either side. */
export function signed(position: number, night = dark.value): string {
  return position < 0 ? mixed(night ? DARK_COLD : LIGHT_COLD, -position) : heat(position, night);
}

function mixed(ramp: Colour[], position: number): string {
  const at = Math.min(Math.max(position, 0), 1) * (ramp.length - 1);
  const below = Math.min(Math.floor(at), ramp.length - 2);
  const between = ramp[below].map((a, i) => Math.round(a + (ramp[below + 1][i] - a) * (at - below)));
  return `rgb(${between.join(" ")})`;
}

/** The colour of a number that is read on `heat(position)`. */
export function ink(position: number, night = dark.value): string {
  if (night) return position < 0.58 ? "#f5f0e8" : "#1a0d09";
  return position < 0.58 ? "#1d1b18" : "#ffffff";
}
