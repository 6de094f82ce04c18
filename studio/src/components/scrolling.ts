// A hint that there is more to see: the edge at which content goes on fades out (see scrolls.css).
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

const EDGES = ["left", "right", "top", "bottom"] as const;

/** A reference for an element that scrolls; its `data-more` names the edges behind which there is more. */
export function useScrollHint<T extends HTMLElement>(): RefObject<T | null> {
  const frame = useRef<T>(null);
  useEffect(() => {
    const box = frame.current;
    if (!box) return undefined;
    const look = () => {
      const more = [
        box.scrollLeft > 1,
        box.scrollLeft + box.clientWidth < box.scrollWidth - 1,
        box.scrollTop > 1,
        box.scrollTop + box.clientHeight < box.scrollHeight - 1,
      ];
      box.dataset.more = EDGES.filter((_, i) => more[i]).join(" ");
    };
    look();
    const sizes = new ResizeObserver(look);
    for (const each of [box, ...box.children]) sizes.observe(each);
    box.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      box.removeEventListener("scroll", look);
    };
  });
  return frame;
}
