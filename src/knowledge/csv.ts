import { CairnError } from "../model/errors.ts";

export interface CsvRow {
  /** First line of the row in the file; the header is line 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** Parses CSV as in RFC 4180, with either line end. The header decides the separator: comma, semicolon or tab. */
export function parseCsv(text: string): CsvRow[] {
  const separator = separatorOf(text);
  const rows: CsvRow[] = [];
  let fields: string[] = [];
  let line = 1;
  let start = 1;
  let at = 0;
  const endRow = () => {
    // An empty line is no record.
    if (fields.length > 1 || fields[0] !== "") rows.push({ line: start, fields });
    fields = [];
    start = line;
  };
  while (at < text.length) {
    if (text[at] === '"') {
      const { value, end, lines } = readQuoted(text, at, line);
      fields.push(value);
      line += lines;
      at = end;
    } else {
      let end = at;
      while (end < text.length && text[end] !== separator && text[end] !== "\n") end++;
      const value = text.slice(at, text[end] === "\n" && text[end - 1] === "\r" && end > at ? end - 1 : end);
      if (value.includes('"')) throw invalid(line, "an unquoted field contains a quote");
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
    } else throw invalid(line, "text follows the closing quote of a field");
  }
  if (fields.length > 0) endRow();
  return rows;
}

function readQuoted(text: string, open: number, line: number): { value: string; end: number; lines: number } {
  let value = "";
  for (let at = open + 1; ; ) {
    const close = text.indexOf('"', at);
    if (close === -1) throw invalid(line, "a quote is not closed");
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

function invalid(line: number, what: string): CairnError {
  return new CairnError("invalid_input", `line ${line}: ${what}`, { details: { line } });
}
