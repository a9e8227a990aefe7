import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CairnError } from "../../../model/errors.ts";
import type { MoveRecord } from "../../../model/migration.ts";
import { syncFolder } from "../backup/copy-file.ts";

/** Beside the database file, so that whoever looks for it finds out where it went. */
export function moveRecordPath(path: string): string {
  return `${path}.move`;
}

export function isOnTheMove(path: string): boolean {
  return existsSync(moveRecordPath(path));
}

export function readMove(path: string): MoveRecord | undefined {
  let text: string;
  try {
    text = readFileSync(moveRecordPath(path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return JSON.parse(text) as MoveRecord;
}

/** The first record of a move: of two processes that begin one at the same moment, one is refused. */
export function beginMove(path: string, record: MoveRecord): void {
  const made = `${moveRecordPath(path)}.${process.pid}`;
  writeFileSync(made, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flush: true });
  try {
    linkSync(made, moveRecordPath(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new CairnError("conflict", `Another process has just begun to move ${path}. Wait until it is done.`, { cause: error });
  } finally {
    rmSync(made, { force: true });
  }
  syncFolder(dirname(path));
}

/** All of the new record or all of the old one, whenever the machine stops. */
export function writeMove(path: string, record: MoveRecord): void {
  const target = moveRecordPath(path);
  const made = `${target}.new`;
  rmSync(made, { force: true });
  writeFileSync(made, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(made, target);
  syncFolder(dirname(target));
}

export function removeMove(path: string): void {
  rmSync(moveRecordPath(path), { force: true });
  syncFolder(dirname(path));
}

/** Where the database of this file is now, if it is not here: on PostgreSQL, until it is back. */
export function awayFrom(path: string): string | undefined {
  const record = readMove(path);
  return record && isAway(record) ? record.url : undefined;
}

export function isAway({ direction, state }: MoveRecord): boolean {
  return direction === "down" || state === "moved";
}

/** The moves of files of this folder, finished or not. */
export function movesIn(folder: string): MoveRecord[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((file) =>
    file.endsWith(".db.move") ? (readMove(join(folder, file.slice(0, -".move".length))) ?? []) : [],
  );
}

/** The projects or systems whose files should be in this folder and are away. */
export function awayFromFolder(folder: string): string[] {
  return movesIn(folder).flatMap((record) => (isAway(record) ? (record.projectId ?? []) : []));
}
