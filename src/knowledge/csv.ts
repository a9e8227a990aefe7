import { CairnError } from "../model/errors.ts";

export interface CsvRow {
  /** Where it starts in the file; the header is line 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** CSV as RFC 4180 has it, with either kind of line end. The separator is the one the header uses: comma, semicolon or tab. */
export function parseCsv(text: string): CsvRow[] {
  const separator = separatorOf(text);
  const rows: CsvRow[] = [];
  let fields: string[] = [];
  let line = 1;
  let start = 1;
  let at = 0;
  const endRow = () => {
    // A line with nothing on it is no record.
    if (fields.length > 1 || fields[0] !== "") rows.push({ line: start, fields });
    fields = [];
    start = line;
  };
  while (at < text.length) {
    if (text[at] === '"') {
      const { value, end, lines } = quoted(text, at, line);
      fields.push(value);
      line += lines;
      at = end;
    } else {
      let end = at;
      while (end < text.length && text[end] !== separator && text[end] !== "\n") end++;
      const value = text.slice(at, text[end] === "\n" && text[end - 1] === "\r" && end > at ? end - 1 : end);
      if (value.includes('"')) throw wrong(line, "a quote stands inside a field that is not quoted");
      fields.push(value);
      at = end;
    }
    if (text[at] === "\r" && text[at + 1] === "\n") at++;
    if (at >= text.length) break;
    if (text[at] === "\n") {
      line++;
      at++;
      endRow();
    } else if (text[at] === separator) {
      at++;
      if (at === text.length) fields.push("");
    } else throw wrong(line, "something follows the closing quote of a field");
  }
  if (fields.length > 0) endRow();
  return rows;
}

function quoted(text: string, open: number, line: number): { value: string; end: number; lines: number } {
  let value = "";
  for (let at = open + 1; ; ) {
    const close = text.indexOf('"', at);
    if (close === -1) throw wrong(line, "a quote is opened and never closed");
    value += text.slice(at, close);
    if (text[close + 1] !== '"') return { value, end: close + 1, lines: value.split("\n").length - 1 };
    value += '"';
    at = close + 2;
  }
}

function separatorOf(text: string): string {
  const header = text.slice(0, text.indexOf("\n") === -1 ? undefined : text.indexOf("\n"));
  const count = (separator: string) => header.split(separator).length;
  return [",", ";", "\t"].reduce((best, one) => (count(one) > count(best) ? one : best));
}

function wrong(line: number, what: string): CairnError {
  return new CairnError("invalid_input", `line ${line}: ${what}`, { details: { line } });
}
