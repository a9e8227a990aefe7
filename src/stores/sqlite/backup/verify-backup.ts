import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { assertRegularFile } from "../../../files/regular-file.ts";
import { type BackupEntry, includes, type VerifiedDatabase, type VerifyLevel } from "../../../model/backup.ts";
import { checkFile } from "../driver/damage.ts";
import { inFileThread } from "../driver/file-thread.ts";
import type { FileCheck } from "../projects/check-records.ts";
import { differences, fileHash } from "./copy-file.ts";

/**
 * Compares one file of a backup with the manifest. count: size and rows per table; integrity: SQLite's integrity check and foreign keys;
 * checksum: every byte; full: every value of every row, against the digests of the source.
 */
export async function verifyEntry(
  location: string,
  entry: BackupEntry,
  level: VerifyLevel,
  signal?: AbortSignal,
): Promise<VerifiedDatabase> {
  const path = join(location, entry.file);
  const damaged: string[] = [];
  const toResult = (problems: readonly string[]): VerifiedDatabase => ({
    kind: entry.kind,
    id: entry.id,
    file: entry.file,
    rows: entry.tables.reduce((sum, { rows }) => sum + rows, 0),
    problems,
    damaged,
  });
  if (!existsSync(path)) return toResult(["the file is missing"]);
  try {
    assertRegularFile(path);
    const problems = await countProblems(path, entry, signal);
    if (problems.length > 0) return toResult(problems);
    for (const check of CHECKS) {
      signal?.throwIfAborted();
      if (!includes(level, check.level)) break;
      const found = await check.problems(path, entry, signal, damaged);
      if (found.length > 0) return toResult(found);
    }
    return toResult([]);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    return toResult([(error as Error).message]); // a file that cannot even be read
  }
}

interface Check {
  readonly level: VerifyLevel;
  problems(path: string, entry: BackupEntry, signal: AbortSignal | undefined, damaged: string[]): Promise<readonly string[]>;
}

const CHECKS: readonly Check[] = [
  { level: "integrity", problems: async (path, _, __, damaged) => recordDamage(await checkFile(path), damaged) },
  {
    level: "checksum",
    problems: async (path, { sha256 }) => ((await fileHash(path)) === sha256 ? [] : ["its checksum is not the one in the manifest"]),
  },
  {
    level: "full",
    problems: async (path, { tables }, signal) => differences(tables, (await inFileThread({ kind: "inspect", path }, { signal })).tables),
  },
];

/** Collects damaged records. They were damaged in the source, so the backup can be restored, with these records. */
function recordDamage({ problems, damaged, stale }: FileCheck, found: string[]): readonly string[] {
  found.push(...damaged.map(({ collection, id, reason }) => `${collection} ${JSON.stringify(id)}: ${reason}`), ...stale);
  return problems;
}

async function countProblems(path: string, entry: BackupEntry, signal: AbortSignal | undefined): Promise<string[]> {
  const { size } = statSync(path); // first, because a shortened file cannot even be read
  if (size !== entry.bytes) return [`it has ${size} bytes instead of ${entry.bytes}`];
  const rows = await inFileThread({ kind: "count", path }, { signal });
  return entry.tables.flatMap(({ name, rows: expected }) => {
    const found = rows.get(name);
    return found === expected ? [] : [`the table ${name} has ${found ?? "no"} rows instead of ${expected}`];
  });
}
