// The color scale of weights, and what rows and columns are.
import type { JSX } from "preact";
import { dark, heat, signed } from "../color";
import { fixed } from "../text";

interface ScaleProps {
  top: number; // the value with the strongest color
  both?: boolean; // from -top to top
  name: string;
}

export function Scale({ top, both = false, name }: ScaleProps): JSX.Element {
  const night = dark.value;
  const shades = Array.from({ length: 17 }, (_, i) => (both ? signed(i / 8 - 1, night) : heat(i / 16, night)));
  const written = both ? fixed(top, 2) : String(top);
  return (
    <p class="scale">
      <span>
        {both ? `−${written}` : "0"} <i style={{ backgroundImage: `linear-gradient(to right, ${shades.join(", ")})` }} /> {written}
      </span>
      <span>{name}</span>
    </p>
  );
}
