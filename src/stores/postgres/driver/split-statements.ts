/** A comment, a quoted body or text, or one other character. */
const TOKEN = /--[^\n]*|\$(\w*)\$[\s\S]*?\$\1\$|'(?:[^']|'')*'|[\s\S]/g;

/** Splits the text of a schema into its statements, without comments: Citus takes one statement per query. */
export function splitStatements(sql: string): string[] {
  const statements = [""];
  for (const [token] of sql.matchAll(TOKEN)) {
    if (token === ";") statements.push("");
    else if (!token.startsWith("--")) statements[statements.length - 1] += token;
  }
  return statements.map((statement) => statement.trim()).filter((statement) => statement !== "");
}
