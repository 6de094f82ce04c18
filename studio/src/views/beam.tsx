import type { JSX } from "preact";
import { Ask } from "../ask";

export function Beam(): JSX.Element {
  return <Ask />;
}
