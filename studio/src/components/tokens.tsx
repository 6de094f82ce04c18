// Text of any script, each piece with its own direction.
import type { ComponentChildren, JSX } from "preact";
import { visible } from "../text";

/** A token or a sentence, isolated from what stands around it. */
export const Say = ({ children }: { children: string }): JSX.Element => <bdi dir="auto">{children}</bdi>;

/** A token as it is seen. */
export const Token = ({ of }: { of: string }): JSX.Element => <Say>{visible(of)}</Say>;

export interface ChipProps {
  token: string;
  tint?: number; // 0…1, how strongly it is looked at
  current?: boolean;
  faded?: boolean;
  confidence?: number; // 0…1
  copied?: boolean; // from the source
  label?: string;
  onPick?: () => void;
  onLook?: (looking: boolean) => void;
  flowing?: boolean; // written as text: a space before a word, no sign for it
  children?: ComponentChildren;
}

/** A token that can be pointed at: tinted by how much it is looked at, underlined by how sure the model was. */
export function Chip({ token, tint, current, faded, confidence, copied, label, onPick, onLook, flowing, children }: ChipProps): JSX.Element {
  const kind = ["chip", current && "current", faded && "faded", copied && "copied", /^<.*>$/.test(token) && "control"].filter(Boolean).join(" ");
  const strength = tint === undefined ? undefined : `${Math.round(Math.min(tint, 1) * 100)}%`;
  const style: Record<string, string> = { "--tint": strength ?? "0%", "--sure": String(confidence ?? 0) };
  return (
    <button
      type="button"
      class={kind}
      style={style}
      aria-label={label}
      aria-current={current ? "step" : undefined}
      data-tint={strength}
      onClick={onPick}
      onPointerEnter={() => onLook?.(true)}
      onPointerLeave={() => onLook?.(false)}
      onFocus={() => onLook?.(true)}
      onBlur={() => onLook?.(false)}
    >
      {flowing ? <Say>{written(token)}</Say> : <Token of={token} />}
      {confidence === undefined ? null : <span class="sure" aria-hidden="true" />}
      {children}
    </button>
  );
}

/** A line of tokens; characters run on, words stand apart. */
export function Line({ label, children, close = false }: { label: string; children: ComponentChildren; close?: boolean }): JSX.Element {
  return (
    <div class={close ? "line close" : "line"} role="group" aria-label={label}>
      {children}
    </div>
  );
}

/** Tokens as text: a line ends between words, or where a token says so. Other tokens than pieces and characters stand apart. */
export function Flow({ label, tokens, chip }: { label: string; tokens: string[]; chip: (t: number, flowing: boolean) => JSX.Element }): JSX.Element {
  if (!flows(tokens)) return <Line label={label}>{tokens.map((_, t) => chip(t, false))}</Line>;
  return (
    <div class="line flowing" role="group" aria-label={label}>
      {groups(tokens).map((group) => [
        <span key={group[0]} class={tokens[group.at(-1)! + 1]?.startsWith("▁") ? "word apart" : "word"}>
          {group.map((t) => chip(t, true))}
        </span>,
        /[\n␊]$/.test(tokens[group.at(-1)!]) ? <span key={`${group[0]} end`} class="break" /> : null,
      ])}
    </div>
  );
}

const BLANK = /^[\s␣␊]$/;

/** The places of the tokens of each word; a space belongs to the word before it. */
function groups(tokens: string[]): number[][] {
  const found: number[][] = [];
  tokens.forEach((token, t) => {
    if (!t || token.startsWith("▁") || BLANK.test(tokens[t - 1]) || /^<.*>$/.test(token)) found.push([t]);
    else found.at(-1)!.push(t);
  });
  return found;
}

/** A token within text: spaces are spaces. */
export const written = (token: string): string => (/^[ ␣]$/.test(token) ? " " : token === "▁" ? "\u200a" : visible(token.replace(/^▁/, "")));

/** Whether tokens are pieces of words, the first of each marked, or characters. */
const flows = (tokens: string[]): boolean => tokens.some((token) => token.startsWith("▁")) || runsOn(tokens);

/** Whether tokens are so short that they should run on. */
export const runsOn = (tokens: string[]): boolean =>
  tokens.every((token) => [...token].length <= 2 || /^<.*>$/.test(token));
