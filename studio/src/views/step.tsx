import type { JSX } from "preact";
import { Ask } from "../ask";

export function Step(): JSX.Element {
  return <Ask />;
}
