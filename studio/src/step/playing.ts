// Play, pause, scrub: a step has phases, and playing goes through them; the arrow keys go from step to step.
import { effect, signal } from "@preact/signals";
import { set } from "../address";
import { motionless } from "../color";
import { moments } from "../session";
import { description, phase, t } from "./moment";

export const playing = signal(false);
const BEAT = 620; // ms for a phase; a whole step where motion is not wanted takes three of them

/** Go to a step; all of it is shown. */
export function to(step: number): void {
  const last = moments.peek().length - 1;
  set({ step: Math.max(0, Math.min(step, last)), phase: null });
}

/** On to the next phase, or to the next step after the last; false where there is nothing more. */
export function on(): boolean {
  const phases = description.peek()?.phases ?? [];
  const at = phase.peek() === null ? phases.length - 1 : phases.indexOf(phase.peek()!);
  if (!motionless.peek() && at + 1 < phases.length) {
    set({ phase: phases[at + 1] });
    return true;
  }
  if (t.peek() + 1 >= moments.peek().length) return false;
  set({ step: t.peek() + 1, phase: motionless.peek() ? null : phases[0] });
  return true;
}

/** Back to the phase before, or to the last one of the step before. */
export function back(): void {
  const phases = description.peek()?.phases ?? [];
  const at = phase.peek() === null ? phases.length - 1 : phases.indexOf(phase.peek()!);
  if (at > 0) set({ phase: phases[at - 1] });
  else if (t.peek() > 0) set({ step: t.peek() - 1, phase: phases.at(-1)! });
}

/** Play from here, or from the beginning where everything is over. */
export function toggle(): void {
  if (!playing.peek()) {
    const over = t.peek() + 1 >= moments.peek().length && (phase.peek() === null || phase.peek() === "token");
    const first = motionless.peek() ? null : (description.peek()?.phases[0] ?? null);
    if (over) set({ step: null, phase: first });
    else if (phase.peek() === null) set({ phase: first });
  }
  playing.value = !playing.peek();
}

/** One beat after the other while it plays; returns how to stop. */
export function beating(): () => void {
  return effect(() => {
    if (!playing.value) return undefined;
    const timer = setInterval(() => {
      if (!on()) playing.value = false;
    }, motionless.value ? 3 * BEAT : BEAT);
    return () => clearInterval(timer);
  });
}

const KEYS: Record<string, () => void> = {
  " ": toggle,
  ArrowRight: () => to(t.peek() + 1),
  ArrowLeft: () => to(t.peek() - 1),
  Home: () => to(0),
  End: () => to(moments.peek().length - 1),
};

/** What a key does here; whether it did anything. */
export function key(event: KeyboardEvent): boolean {
  if (event.shiftKey && event.key === "ArrowRight") on();
  else if (event.shiftKey && event.key === "ArrowLeft") back();
  else if (KEYS[event.key]) KEYS[event.key]();
  else return false;
  if (event.key !== " ") playing.value = false;
  return true;
}
