// How a token is written: seen, never obeyed. What has no shape of its own is shown by a sign.

const JOINERS = /^[\u200c\u200d]*$/u;
const SIGNS: Record<string, string> = { " ": "␣", "▁": "␣", "\u00a0": "⍽", "\u007f": "␡" };

function sign(c: string): string {
  const code = c.codePointAt(0) ?? 0;
  if (SIGNS[c]) return SIGNS[c];
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (/\p{Cs}/u.test(c)) return "\ufffd";
  if (c === "\u200c" || c === "\u200d") return c; // they shape the letters around them
  if (/[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}]/u.test(c)) return `\\u${code.toString(16).padStart(4, "0")}`;
  return c;
}

/** The token with every character seen. */
export function visible(token: string): string {
  if (!token) return "∅";
  if (JOINERS.test(token)) return [...token].map((c) => `\\u${c.codePointAt(0)!.toString(16)}`).join("");
  const shown = [...token].map(sign).join("");
  return /^\p{M}/u.test(shown) ? `◌${shown}` : shown; // a mark needs something under it
}

/** Tokens in a row, as text: pieces and characters join, words have spaces between them. */
export const joined = (tokens: string[]): string =>
  tokens.some((each) => each.startsWith("▁")) ? tokens.join("").replaceAll("▁", " ").trim() : tokens.join(tokens.some((each) => [...each].length > 2) ? " " : "");

/** Shortened for a narrow place, never inside a character. */
export function short(label: string, letters = 14): string {
  const parts = [...new Intl.Segmenter().segment(label)].map((part) => part.segment);
  return parts.length <= letters ? label : `${parts.slice(0, letters - 1).join("")}…`;
}

/** How wide a label is, in letters; wide scripts count twice. */
export function width(label: string): number {
  return [...label].reduce((sum, c) => sum + (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]/u.test(c) ? 2 : 1), 0);
}

export const fixed = (value: number | null | undefined, digits = 3): string =>
  value === null || value === undefined || !Number.isFinite(value) ? "−∞" : value.toFixed(digits).replace(/^-(0(\.0+)?)$/, "$1").replace("-", "−");

export const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** A share of one, as it is read: 98 %, 0.4 %. */
export function percent(value: number): string {
  const hundred = value * 100;
  if (hundred > 0 && hundred < 0.1) return "<0.1 %";
  return `${hundred >= 9.95 ? hundred.toFixed(0) : hundred.toFixed(1)} %`;
}
