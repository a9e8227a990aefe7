/** Places of one name in one file, in a few bytes each: most names are used more than once, and lines lie close together. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Positions in order. Lines as differences, all numbers seven bits to a byte. */
export function packPositions(positions: readonly Position[]): Uint8Array {
  const bytes: number[] = [];
  const push = (value: number) => {
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
    bytes.push(rest);
  };
  let line = 0;
  for (const position of [...positions].sort((a, b) => a.line - b.line || a.column - b.column)) {
    push(position.line - line);
    push(position.column);
    line = position.line;
  }
  return Uint8Array.from(bytes);
}

export function unpackPositions(bytes: Uint8Array): Position[] {
  const positions: Position[] = [];
  let at = 0;
  const next = () => {
    let value = 0;
    for (let factor = 1; at < bytes.length; factor *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) break;
    }
    return value;
  };
  for (let line = 0; at < bytes.length; ) {
    line += next();
    positions.push({ line, column: next() });
  }
  return positions;
}
