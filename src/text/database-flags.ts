import type { DatabaseName } from "../model/backup.ts";
import { shellWord } from "./shell-word.ts";

/** Selects a database on the command line, quoted so that the command can be pasted. */
export function databaseFlags({ kind, id }: DatabaseName): string {
  if (kind === "runs") return "--runs";
  return kind === "shared" ? "--scope shared" : `--${kind} ${shellWord(id)}`;
}
