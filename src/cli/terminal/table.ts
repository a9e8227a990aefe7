import type { Style } from "./style.ts";
import { cutToWidth, pad, textWidth } from "./width.ts";

export interface Column {
  readonly title: string;
  /** Shortened if the terminal is narrow. Ids are not, because users copy them. */
  readonly flexible: boolean;
  readonly right?: boolean;
  /** The column that gets the space: it is shortened last. */
  readonly main?: boolean;
  /** Left out if the terminal is narrow. A higher number is left out first. */
  readonly drop?: number | undefined;
}

const GAP = "  ";
/** Cells, and the share of the terminal, that a flexible column keeps before the main column shrinks. */
const SIDE_CELLS = 10;
const SIDE_SHARE = 0.15;
/** Cells that the main column keeps before other columns are left out. */
const MAIN_CELLS = 24;
const NARROWEST = 6;

/** Formats a table that fits the terminal. Without `width` (no terminal), nothing is shortened. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[], width: number | undefined, style: Style): string {
  const natural = columns.map((column, index) => Math.max(textWidth(column.title), ...rows.map((row) => textWidth(row[index] ?? ""))));
  const kept = width === undefined ? natural.map((cells, index) => ({ index, cells })) : fitColumns(columns, natural, width);
  const line = (row: readonly string[], paint: (text: string) => string = (text) => text) =>
    kept
      .map(({ index, cells }) => {
        const shown = cutToWidth(row[index] ?? "", cells);
        return paint(columns[index]!.right ? " ".repeat(cells - textWidth(shown)) + shown : pad(shown, cells));
      })
      .join(GAP)
      .trimEnd();
  return [
    line(
      columns.map((column) => column.title),
      style.bold,
    ),
    ...rows.map((row) => line(row)),
  ].join("\n");
}

/** Drops and narrows columns until the table fits: the main column keeps its space as long as possible. */
function fitColumns(
  columns: readonly Column[],
  natural: readonly number[],
  width: number,
): { readonly index: number; readonly cells: number }[] {
  let kept = columns.map((column, index) => ({ column, index, cells: natural[index]! }));
  const excess = () => kept.reduce((sum, { cells }) => sum + cells, GAP.length * (kept.length - 1)) - width;
  const narrow = (which: (column: Column) => boolean, least: number) => {
    for (let over = excess(); over > 0; over--) {
      const candidates = kept.filter(({ column, cells }) => column.flexible && which(column) && cells > least);
      const widest = candidates.reduce<(typeof kept)[number] | undefined>((a, b) => (a && a.cells >= b.cells ? a : b), undefined);
      if (!widest) return;
      widest.cells--;
    }
  };
  narrow(({ main }) => !main, Math.max(SIDE_CELLS, Math.floor(width * SIDE_SHARE)));
  narrow(({ main }) => main === true, MAIN_CELLS);
  while (excess() > 0) {
    const dropped = kept.reduce<(typeof kept)[number] | undefined>(
      (a, b) => ((b.column.drop ?? 0) > (a?.column.drop ?? 0) ? b : a),
      undefined,
    );
    if (!dropped) break;
    kept = kept.filter((one) => one !== dropped);
  }
  narrow(() => true, NARROWEST);
  // The main column takes back what the columns that were left out do not need.
  const main = kept.find(({ column }) => column.main);
  if (main) main.cells = Math.min(natural[main.index]!, main.cells + Math.max(0, -excess()));
  return kept;
}
