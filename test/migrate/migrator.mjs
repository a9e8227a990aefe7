// A migration in a process of its own that kills itself with kill -9 right after a given write. Runs from dist/.
//   node migrator.mjs '{"dataDir":…,"stateDir":…,"input":{…},"dieAt":7}'
// dieAt may also name the write; with "stop" the process stops there (SIGSTOP) instead of dying.
// Without dieAt it writes the names of all its writes to stdout.
import { writeSync } from "node:fs";
import { openMigrations } from "../../dist/open/open-migrations.js";

const { dataDir, stateDir, input, dieAt, stop } = JSON.parse(process.argv[2]);
let count = 0;
const trace = (point) => {
  count++;
  if (dieAt === undefined) writeSync(1, `${point}\n`);
  else if (count === dieAt || point === dieAt) process.kill(process.pid, stop ? "SIGSTOP" : "SIGKILL");
};
const now = () => new Date().toISOString();
await openMigrations({ dataDir, stateDir, now }).migrate({ ...input, trace });
if (dieAt === undefined) writeSync(1, `peak ${process.resourceUsage().maxRSS}\n`); // in KiB
