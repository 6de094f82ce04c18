import type { JSX } from "preact";
import { Ask } from "../ask";

export function WhatIf(): JSX.Element {
  return <Ask />;
}
