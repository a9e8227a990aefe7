// A process that works on a system and dies at its n-th write. Runs from dist/, like every child process of the tests.
import { writeSync } from "node:fs";
import pg from "pg";
import { loadEngine } from "../../dist/stores/sqlite/driver/engine.js";
import { system } from "../../dist/systems.js";
import { scenario } from "./scenario.mjs";

const { storage, systemId, dieAt } = JSON.parse(process.argv[2]);
// A pipe that is written to at once: what was said before a kill is not lost.
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);

let left = dieAt;
function point() {
  if (--left === 0) process.kill(process.pid, "SIGKILL");
}

const WRITES = /^\s*(INSERT|UPDATE|DELETE|CREATE|LOCK|WITH|RELEASE|COMMIT|BEGIN)/i;

const COMMIT = /^\s*COMMIT/;

/** A point before every statement that writes, and one after every commit. */
async function mortalSqlite() {
  const engine = await loadEngine(); // the one object that the driver takes its engine from
  const around = (call, sql) => {
    if (!WRITES.test(sql)) return call();
    point();
    const result = call();
    if (COMMIT.test(sql)) point();
    return result;
  };
  engine.DatabaseSync = class extends engine.DatabaseSync {
    exec(sql) {
      return around(() => super.exec(sql), sql);
    }
    prepare(sql) {
      return new Proxy(super.prepare(sql), {
        get(statement, name) {
          const found = statement[name];
          if (typeof found !== "function") return found;
          if (name !== "run") return found.bind(statement);
          return (...params) => around(() => statement.run(...params), sql);
        },
      });
    }
  };
}

/** A point before every statement that writes; where it commits, one while the server works on it and one after it too. */
function mortalPostgres() {
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (config, ...rest) {
    const sql = typeof config === "string" ? config : (config.text ?? "");
    if (!WRITES.test(sql)) return query.call(this, config, ...rest);
    point();
    const answer = query.call(this, config, ...rest);
    if (inTransaction(this, sql)) return answer;
    point();
    return Promise.resolve(answer).then((result) => {
      point();
      return result;
    });
  };
}

/** Whether this is a statement of a transaction, which has no effect before its commit. */
function inTransaction(client, sql) {
  if (/^BEGIN/.test(sql)) client.begun = true;
  const inside = client.begun === true && !COMMIT.test(sql);
  if (COMMIT.test(sql)) client.begun = false;
  return inside;
}

if (storage.storage === "sqlite") await mortalSqlite();
else mortalPostgres();
const shop = system({ systemId, storage, snapshots: { keep: 1, everyMs: 3_600_000 } });
await scenario(shop, say);
await shop.close();
