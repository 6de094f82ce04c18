import type { JSX } from "preact";
import { Ask } from "../ask";

export function Compare(): JSX.Element {
  return <Ask />;
}
