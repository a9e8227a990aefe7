import type { RecallDoc, RecallSet } from "./sets.ts";

/** Characters from which a joined record is complete. Together with one more document it stays below the limit of a description. */
const JOINED_CHARS = 5_000;
const JOINED_MAX = 9_500;

/** Joins the documents of a set into records of several thousand characters: each question is answered by one part of its record. */
export function joinDocs(set: RecallSet): RecallSet {
  const records: { readonly parts: RecallDoc[]; chars: number }[] = [];
  for (const doc of set.docs) {
    const last = records.at(-1);
    if (last && last.chars < JOINED_CHARS && last.chars + doc.text.length <= JOINED_MAX) {
      last.parts.push(doc);
      last.chars += doc.text.length + 2;
    } else records.push({ parts: [doc], chars: doc.text.length });
  }
  const recordOf = new Map(records.flatMap(({ parts }, index) => parts.map(({ id }) => [id, `record-${index}`] as const)));
  return {
    name: `long-${set.name.replaceAll("_", "-")}`,
    docs: records.map(({ parts }, index) => ({ id: `record-${index}`, text: parts.map(({ text }) => text).join("\n\n") })),
    queries: set.queries.map(({ text, rel }) => ({ text, rel: joinGains(rel, recordOf) })),
  };
}

function joinGains(rel: Readonly<Record<string, number>>, recordOf: ReadonlyMap<string, string>): Record<string, number> {
  const gains: Record<string, number> = {};
  for (const [id, gain] of Object.entries(rel)) {
    const record = recordOf.get(id);
    if (record !== undefined) gains[record] = Math.max(gains[record] ?? 0, gain);
  }
  return gains;
}
