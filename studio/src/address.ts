// The state of the page is its address: #view?name=value&…, so a link reproduces what is seen.
import { computed, signal } from "@preact/signals";

export const VIEWS = ["predict", "step", "align", "beam", "whatif", "compare", "train"] as const;
export type View = (typeof VIEWS)[number];
type Changes = Record<string, string | number | null>;

interface Address {
  view: View;
  values: URLSearchParams;
}

function read(): Address {
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  const view = VIEWS.find((each) => each === name) ?? "predict"; // also of links to #translate, its first name
  return { view, values: new URLSearchParams(query ?? "") };
}

const address = signal(read());
addEventListener("hashchange", () => {
  if (location.hash !== written(address.peek())) address.value = read();
});

function written({ view, values }: Address): string {
  const query = values.toString();
  return `#${view}${query ? `?${query}` : ""}`;
}

function changed(view: View, changes: Changes): Address {
  const values = new URLSearchParams(address.peek().values);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") values.delete(name);
    else values.set(name, String(value));
  }
  return { view, values };
}

export const view = computed(() => address.value.view);

/** A word of the address; "" where it is not given. */
export const word = (name: string): string => address.value.values.get(name) ?? "";

/** A whole number of the address; null where there is none. */
export function number(name: string): number | null {
  const given = word(name);
  return /^\d{1,6}$/.test(given) ? Number(given) : null;
}

/** A decimal number of the address; null where there is none. */
export function decimal(name: string): number | null {
  const given = word(name);
  return /^\d{1,6}(\.\d{1,6})?$/.test(given) ? Number(given) : null;
}

const REST = 120; // ms: browsers refuse an address that changes too often, as when a slider is dragged
let writing = 0;

function write(): void {
  clearTimeout(writing);
  if (location.hash !== written(address.peek())) history.replaceState(null, "", written(address.peek()));
}
addEventListener("pagehide", write);

/** Change words of the address in place; null or "" takes one away. */
export function set(changes: Changes): void {
  address.value = changed(address.peek().view, changes);
  clearTimeout(writing);
  writing = setTimeout(write, REST);
}

/** Go to a view: a new entry in the browser's history. */
export function go(to: View, changes: Changes = {}): void {
  write();
  address.value = changed(to, changes);
  history.pushState(null, "", written(address.value));
}
addEventListener("popstate", () => {
  address.value = read();
});

/** Where a view is, for links. */
export const link = (to: View, changes: Changes = {}): string => {
  void address.value; // links follow every change
  return written(changed(to, changes));
};
