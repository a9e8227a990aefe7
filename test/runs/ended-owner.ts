import { spawnSync } from "node:child_process";
import { newOwner } from "../../src/scheduling/owner.ts";

/** Returns an owner like that of a process of this machine which has ended. */
export function endedOwner(): string {
  const { pid } = spawnSync(process.execPath, ["-e", "0"]);
  const [machine, , started, id] = newOwner().split("/");
  return [machine, pid, started, id].join("/");
}
