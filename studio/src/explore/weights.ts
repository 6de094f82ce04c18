// Weights of one step that are moved by hand: what is pinned stands, the others share the rest as the engine does it.

/** A row whose weight on one source token is set; the other pinned ones give way where all would be more than 1. */
export function pinned(row: number[], pins: Map<number, number>): number[] {
  const rest = Math.max(0, 1 - [...pins.values()].reduce((sum, each) => sum + each, 0));
  const free = row.map((weight, s) => (pins.has(s) ? 0 : weight));
  const total = free.reduce((sum, each) => sum + each, 0);
  const count = row.length - pins.size;
  return row.map((_, s) => pins.get(s) ?? (total > 0 ? (free[s] / total) * rest : count ? rest / count : 0));
}

/** The pins of a step after one of them was moved: the newest stands, older ones shrink to leave it room. */
export function moved(pins: Map<number, number>, source: number, weight: number): Map<number, number> {
  const others = [...pins].filter(([s]) => s !== source);
  const sum = others.reduce((total, [, each]) => total + each, 0);
  const shrink = sum > 1 - weight ? (1 - weight) / sum : 1;
  return new Map([...others.map(([s, each]): [number, number] => [s, Math.floor(each * shrink * 1000) / 1000]), [source, weight]]);
}
