// Keys of the page.

/** Whether a key is meant for what has the focus rather than for the page. */
export function typing(event: KeyboardEvent): boolean {
  const at = event.target instanceof Element ? event.target : null;
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  if (event.key === " " && at?.matches("input[type=range]")) return false; // a slider has no use for it
  if (at?.closest("input, textarea, select")) return true;
  return (event.key === " " || event.key === "Enter") && at?.closest("button, summary, a, [role=button]") != null;
}
