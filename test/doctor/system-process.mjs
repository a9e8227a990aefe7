// A process that keeps the system "shop" open until it is killed; with a time, it commits once as if at that time.
//   node system-process.mjs <state folder> [<milliseconds since 1970>]
import { sqliteSystemStorage } from "../../dist/stores/sqlite/systems/storage.js";

const [stateDir, at] = process.argv.slice(2);
const store = await sqliteSystemStorage({ stateDir }).create("shop");
await store.overview();
if (at) await store.commit({ component: "second", version: 0, at: new Date(Number(at)).toISOString(), messages: [], ports: [], state: [] });
process.stdout.write("ready\n");
process.stdin.resume();
