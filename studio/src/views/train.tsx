import type { JSX } from "preact";
import { Ask } from "../ask";

export function Train(): JSX.Element {
  return <Ask />;
}
