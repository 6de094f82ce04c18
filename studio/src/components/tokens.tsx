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
  label?: string;
  onPick?: () => void;
  onLook?: (looking: boolean) => void;
  children?: ComponentChildren;
}

/** A token that can be pointed at: tinted by how much it is looked at, underlined by how sure the model was. */
export function Chip({ token, tint, current, faded, confidence, label, onPick, onLook, children }: ChipProps): JSX.Element {
  const kind = ["chip", current && "current", faded && "faded", /^<.*>$/.test(token) && "control"].filter(Boolean).join(" ");
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
      <Token of={token} />
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

/** Whether tokens are so short that they should run on. */
export const runsOn = (tokens: string[]): boolean =>
  tokens.every((token) => [...token].length <= 2 || /^<.*>$/.test(token));
