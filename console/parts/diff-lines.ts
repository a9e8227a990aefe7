export interface DiffLine {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
}

/** Above this many cells the table of the comparison would take too long; the texts are then shown one after the other. */
const MAX_CELLS = 4_000_000;

/** Compares two texts by lines: the longest common subsequence stays, the rest was removed or added. */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ kind: "same", text }));
  return [
    ...same(before.slice(0, start)),
    ...compareMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...same(before.slice(before.length - end)),
  ];
}

function compareMiddle(before: readonly string[], after: readonly string[]): DiffLine[] {
  const all = (kind: DiffLine["kind"], lines: readonly string[]): DiffLine[] => lines.map((text) => ({ kind, text }));
  if (before.length * after.length > MAX_CELLS || before.length === 0 || after.length === 0)
    return [...all("removed", before), ...all("added", after)];
  const width = after.length + 1;
  const common = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      common[i * width + j] =
        before[i] === after[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      lines.push({ kind: "same", text: before[i++]! });
      j++;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) lines.push({ kind: "removed", text: before[i++]! });
    else lines.push({ kind: "added", text: after[j++]! });
  }
  return [...lines, ...all("removed", before.slice(i)), ...all("added", after.slice(j))];
}
