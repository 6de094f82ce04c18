// Two translations token by token: what stays, what goes, what comes (the longest common subsequence).

export interface Difference {
  gone: Set<number>; // places in the old one
  come: Set<number>; // places in the new one
  first: number; // the first place where they part; -1 where they never do
}

export function difference(old: number[], now: number[]): Difference {
  const longest = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      longest[i][j] = old[i] === now[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const gone = new Set<number>();
  const come = new Set<number>();
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) [i, j] = [i + 1, j + 1];
    else if (j >= now.length || (i < old.length && longest[i + 1][j] >= longest[i][j + 1])) gone.add(i++);
    else come.add(j++);
  }
  const parts = old.findIndex((id, at) => id !== now[at]);
  return { gone, come, first: parts >= 0 ? parts : now.length > old.length ? old.length : -1 };
}
