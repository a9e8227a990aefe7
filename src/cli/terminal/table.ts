import type { Style } from "./style.ts";
import { cutToWidth, pad, textWidth } from "./width.ts";

export interface Column {
  readonly title: string;
  /** Shortened if the terminal is narrow. Ids are not, because users copy them. */
  readonly flexible: boolean;
  readonly right?: boolean;
}

const GAP = "  ";
const NARROWEST = 8;

/** Formats a table that fits the terminal. Without `width` (no terminal), nothing is shortened. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[], width: number | undefined, style: Style): string {
  const natural = columns.map((column, index) => Math.max(textWidth(column.title), ...rows.map((row) => textWidth(row[index] ?? ""))));
  const widths = width === undefined ? natural : shrink(columns, natural, width);
  const line = (cells: readonly string[], paint: (text: string) => string = (text) => text) =>
    cells
      .map((cell, index) => {
        const shown = cutToWidth(cell, widths[index]!);
        return paint(columns[index]!.right ? " ".repeat(widths[index]! - textWidth(shown)) + shown : pad(shown, widths[index]!));
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

/** Narrows the widest flexible column until all columns fit or none can shrink further. */
function shrink(columns: readonly Column[], natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const gaps = GAP.length * (columns.length - 1);
  let excess = widths.reduce((sum, one) => sum + one, gaps) - width;
  while (excess > 0) {
    let widest = -1;
    for (const [index, column] of columns.entries())
      if (column.flexible && widths[index]! > NARROWEST && (widest === -1 || widths[index]! > widths[widest]!)) widest = index;
    if (widest === -1) break;
    widths[widest]!--;
    excess--;
  }
  return widths;
}
