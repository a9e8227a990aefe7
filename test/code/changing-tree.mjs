// A tree that is another one in each round: files are edited, grow and shrink, move, go and come back. Each part of a file says what
// it belongs to, so that a reader can check whether the others exist too.
const STABLE = 10;
const WANDERERS = 5;
const FLICKERING = 6;
const DRIFTING = 5;

export const MARKER = /anchor (\w+) version (\d+) part (\d+) of (\d+)/;
export const ALWAYS_THERE = [...names("stable", STABLE), ...names("wanderer", WANDERERS)];

export function treeAt(round) {
  const tree = new Map();
  for (let k = 0; k < STABLE; k++)
    tree.set(`stable/file${k}.${k < 3 ? "py" : "txt"}`, content(`stable${k}`, Math.floor((round + k) / 3), k < 3));
  // Moved with a name for it; every second one is edited at the same time.
  for (let k = 0; k < WANDERERS; k++) tree.set(wandererPath(k, round), content(`wanderer${k}`, k % 2 === 0 ? 7 : round, false));
  for (let k = 0; k < FLICKERING; k++) if ((round + k) % 4 < 2) tree.set(`flickering/file${k}.txt`, content(`flickering${k}`, k, false));
  // Renamed without notice: only the manifest at the end shows it.
  for (let k = 0; k < DRIFTING; k++) tree.set(`drift${Math.floor(round / 2)}/file${k}.txt`, content(`drifting${k}`, 1, false));
  return tree;
}

export function renamesAt(round) {
  return Array.from({ length: WANDERERS }, (_, k) => ({ from: wandererPath(k, round - 1), to: wandererPath(k, round) })).filter(
    ({ from, to }) => from !== to,
  );
}

function wandererPath(k, round) {
  return `walk${Math.floor((round + k) / 2)}/wanderer${k}.txt`;
}

function content(name, version, isCode) {
  const parts = 1 + ((version + name.length) % 3);
  return Array.from({ length: parts }, (_, part) => {
    const marker = `anchor ${name} version ${version} part ${part + 1} of ${parts}`;
    // Either way long enough to be a chunk of its own.
    return isCode
      ? `def ${name}_part${part + 1}():\n    """${marker}"""\n${"    # filler text\n".repeat(60)}`
      : `${marker} ${"filler text ".repeat(250)}\n`;
  }).join("");
}

function names(kind, count) {
  return Array.from({ length: count }, (_, k) => `${kind}${k}`);
}
