/** A rectangle of a treemap, in the unit of the given width and height. */
export interface Tile<T> {
  readonly item: T;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Divides an area among items by their weight, in rows whose tiles are as square as possible. Items of no weight get no tile. */
export function squarify<T>(items: readonly T[], weightOf: (item: T) => number, area: Area): Tile<T>[] {
  const rest = items.filter((item) => weightOf(item) > 0).toSorted((a, b) => weightOf(b) - weightOf(a));
  const total = rest.reduce((sum, item) => sum + weightOf(item), 0);
  const scale = (area.width * area.height) / total;
  const sizeOf = (item: T) => weightOf(item) * scale;
  const tiles: Tile<T>[] = [];
  let left = area;
  while (rest.length > 0) {
    const side = Math.min(left.width, left.height);
    let count = 1;
    while (count < rest.length && worst(rest.slice(0, count + 1).map(sizeOf), side) <= worst(rest.slice(0, count).map(sizeOf), side))
      count++;
    const row = rest.splice(0, count);
    left = place(row, sizeOf, left, tiles);
  }
  return tiles;
}

/** Returns the largest ratio of a side to the other in a row along this side. */
function worst(sizes: readonly number[], side: number): number {
  const sum = sizes.reduce((total, size) => total + size, 0);
  return Math.max((side * side * sizes[0]!) / (sum * sum), (sum * sum) / (side * side * sizes.at(-1)!));
}

/** Places a row along the shorter side, and returns the area that is left. */
function place<T>(row: readonly T[], sizeOf: (item: T) => number, area: Area, tiles: Tile<T>[]): Area {
  const sum = row.reduce((total, item) => total + sizeOf(item), 0);
  const isColumn = area.width >= area.height;
  const depth = sum / (isColumn ? area.height : area.width);
  let along = isColumn ? area.y : area.x;
  for (const item of row) {
    const length = sizeOf(item) / depth;
    tiles.push(
      isColumn ? { item, x: area.x, y: along, width: depth, height: length } : { item, x: along, y: area.y, width: length, height: depth },
    );
    along += length;
  }
  return isColumn
    ? { ...area, x: area.x + depth, width: Math.max(0, area.width - depth) }
    : { ...area, y: area.y + depth, height: Math.max(0, area.height - depth) };
}
