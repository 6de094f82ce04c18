import type { JSX } from "preact";
import { Ask } from "../ask";

export function Align(): JSX.Element {
  return <Ask />;
}
