import { randomUUID } from "node:crypto";
import PgBoss from "pg-boss";
import { sha256Hex } from "../../../model/ids.ts";
import type { PgValue, PostgresTx } from "../driver/driver.ts";

export const SCHEMA = "cairn_queue";
/** A job that took its process with it so often is not tried again. */
const RETRIES = 5;
/** Jobs that ended can be asked for at least so long. */
const KEEP_SECONDS = 3_600;
/** Whether a job's process lives shows by its lock, not by the clock; pg-boss takes no more than a day. */
const EXPIRE_SECONDS = 23 * 3_600;
/** Work that no server came for in so long is given up. */
const RETENTION_MINUTES = 14 * 24 * 60;

/**
 * Projects are spread over a fixed number of lanes, each a queue of pg-boss. A lane is worked in by one process at a time, which is
 * keeps a project's batches in order, and the holder of the lane's lock knows that an active job there belongs to a dead process.
 */
const LANES = [..."0123456789abcdef"].map((digit) => `code_${digit}`);
export const laneOf = (projectId: string) => `code_${sha256Hex(projectId)[0]}`;
/** The first digit of a job's id names its lane, so that a job is found by its id alone. */
export const newJobId = (lane: string) => lane.at(-1)! + randomUUID().slice(1);

/** A new one each time it is tried: one whose start failed cannot be started again. */
export async function openBoss(url: string): Promise<PgBoss> {
  const boss = new PgBoss({
    connectionString: url,
    schema: SCHEMA,
    application_name: "cairn queue",
    max: 2,
    schedule: false,
    maintenanceIntervalSeconds: 60,
    archiveCompletedAfterSeconds: KEEP_SECONDS,
    deleteAfterSeconds: KEEP_SECONDS,
  });
  boss.on("error", () => {}); // of its upkeep and of idle connections; it tries again by itself
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

/** Lets pg-boss speak within our transaction: its job and our row come and go together. */
export function within(tx: PostgresTx): PgBoss.Db {
  return { executeSql: async (sql, values) => ({ rows: await tx.all(sql, ...(values as PgValue[])) }) };
}
