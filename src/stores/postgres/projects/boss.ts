import { randomUUID } from "node:crypto";
import PgBoss from "pg-boss";
import { sha256Hex } from "../../../model/ids.ts";
import type { PgValue, PostgresDatabase, PostgresTx } from "../driver/driver.ts";

export const SCHEMA = "cairn_queue";
/** Retries before a crashing job fails. */
const RETRIES = 5;
/** Seconds for which finished jobs can be queried. */
const KEEP_SECONDS = 3_600;
/** Seconds until pg-boss expires a running job, just below its maximum of a day. The lane's lease, not this time, reveals a dead process. */
const EXPIRE_SECONDS = 23 * 3_600;
/** Retention of unfetched jobs, in minutes. */
const RETENTION_MINUTES = 14 * 24 * 60;

/**
 * Lanes are queues of pg-boss; a project's hash selects its lane. One process at a time runs a lane, which keeps a project's batches in
 * order. The holder of the lane's lease knows that an active job it did not start belongs to a dead process.
 */
const LANES = [..."0123456789abcdef"].map((digit) => `code_${digit}`);
export const laneOf = (projectId: string) => `code_${sha256Hex(projectId)[0]}`;
/** The first digit of a job's id names its lane, so that a job is found by its id alone. */
export const newJobId = (lane: string) => lane.at(-1)! + randomUUID().slice(1);

/** Starts a new instance of pg-boss. An instance whose start failed cannot be started again. */
export async function openBoss(database: PostgresDatabase): Promise<PgBoss> {
  const boss = new PgBoss({
    db: connectionsOf(database),
    schema: SCHEMA,
    schedule: false,
    maintenanceIntervalSeconds: 60,
    archiveCompletedAfterSeconds: KEEP_SECONDS,
    deleteAfterSeconds: KEEP_SECONDS,
  });
  boss.on("error", () => {}); // errors of maintenance and of idle connections: pg-boss retries by itself
  try {
    await boss.start();
    const known = new Set((await boss.getQueues()).map(({ name }) => name));
    const settings = {
      policy: "singleton",
      retryLimit: RETRIES,
      retryDelay: 0,
      expireInSeconds: EXPIRE_SECONDS,
      retentionMinutes: RETENTION_MINUTES,
    } as const;
    for (const lane of LANES) if (!known.has(lane)) await boss.createQueue(lane, { name: lane, ...settings });
    return boss;
  } catch (error) {
    await boss.stop({ graceful: false }).catch(() => {});
    throw error;
  }
}

/** Makes pg-boss use these connections. Its statements without values come several at a time and control their own transaction. */
function connectionsOf(database: PostgresDatabase): PgBoss.Db {
  return {
    executeSql: async (sql, values = []) => ({
      rows: values.length === 0 ? await database.script(sql) : await database.statement(sql, values as PgValue[]),
    }),
  };
}

/** Makes pg-boss use this transaction, so that its job and the row in `index_work` are written atomically. */
export function within(tx: PostgresTx): PgBoss.Db {
  return { executeSql: async (sql, values) => ({ rows: await tx.all(sql, ...(values as PgValue[])) }) };
}
