import type { Cairn } from "../../src/index.ts";

/** Returns the ids of all checkpoints, read page by page and checked against the total. */
export async function storedIds(cairn: Cairn, projectPath: string): Promise<Set<string>> {
  const ids: string[] = [];
  let cursor: string | undefined;
  let total: number;
  do {
    const page = await cairn.checkpoints.list({ projectPath, limit: 100, cursor });
    ids.push(...page.checkpoints.map(({ id }) => id));
    cursor = page.nextCursor;
    total = page.total;
  } while (cursor !== undefined);
  const distinct = new Set(ids);
  if (ids.length !== total || distinct.size !== total)
    throw new Error(`The pages hold ${ids.length} checkpoints, ${distinct.size} of them distinct, but the total is ${total}.`);
  return distinct;
}
