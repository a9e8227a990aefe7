import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type PgBoss from "pg-boss";
import { asCairnError, CairnError } from "../../../model/errors.ts";
import { type IndexJob, type IndexOutcome, type IndexWork, isFinished } from "../../../model/index-job.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import { type IndexQueue, type PerformIndexWork, shareOf } from "../../../ports/index-queue.ts";
import { poll } from "../../../scheduling/retry.ts";
import { openPostgres } from "../driver/driver.ts";
import { translatePostgresError } from "../driver/errors.ts";
import { ensureSchema } from "../driver/schema-version.ts";
import { sessionLocks } from "../driver/session-locks.ts";
import { laneOf, newJobId, openBoss, SCHEMA, within } from "./boss.ts";

export interface PostgresIndexQueueOptions {
  readonly url: string;
  readonly perform: PerformIndexWork;
  /** Jobs that may wait, over all servers. */
  readonly capacity?: number | undefined;
  /** Lanes this process works in at the same time. */
  readonly lanesAtOnce?: number;
  /** How often work of other processes is looked for. */
  readonly lookEveryMs?: number;
  /** How long `close` waits for what is under way; then it goes back to the queue. */
  readonly drainMs?: number;
  /** Called once when waiting work fails, and again only after a success. */
  readonly onTrouble?: ((message: string) => void) | undefined;
}

const CAPACITY = 1_000;
const CANCEL_LOOK_MS = 300;
const CANCEL_WAIT_MS = 10_000;

/** pg-boss has the jobs. The files they are about lie beside them until the job ends, so that what is kept of old jobs is small. */
const QUEUE_SCHEMA: DatabaseSchema = {
  version: 1,
  name: "index queue",
  sql: `
    CREATE TABLE index_work (
      job_id uuid PRIMARY KEY,
      lane text NOT NULL,
      project_id text NOT NULL,
      accepted_at timestamptz NOT NULL DEFAULT now(),
      cancelled boolean NOT NULL DEFAULT false,
      sender text,
      work bytea NOT NULL
    );
    CREATE INDEX index_work_project ON index_work (project_id);
  `,
};

const lockOf = (lane: string) => `cairn index ${lane}`;
const isJobId = (id: string) => /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id);

interface Running {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** A queue that all servers of a database share. A job is gone from it only when what it brought is in the index. */
export function postgresIndexQueue({
  url,
  perform,
  capacity = CAPACITY,
  lanesAtOnce = 2,
  lookEveryMs = 1_000,
  drainMs = 10_000,
  onTrouble = () => {},
}: PostgresIndexQueueOptions): IndexQueue {
  const database = openPostgres({ url, poolMax: 3 });
  const intake = openPostgres({ url, poolMax: 2 }); // of its own: a flood of new work must not keep the old from being done
  const working = new Map<string, Running>(); // by lane
  const locks = sessionLocks(url, () => {
    for (const { stop } of working.values()) stop.abort(LEFT); // somebody else has the lane now
  });
  let installed: Promise<PgBoss> | undefined;
  let looking: Promise<void> | undefined;
  let lookAgain = false;
  let troubled = false;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  /** What pg-boss raises is the driver's own. */
  function ours<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw translatePostgresError(error, database.where, "undone");
    });
  }

  function install(): Promise<PgBoss> {
    installed ??= ours(openBoss(url)).then(async (boss) => {
      await ensureSchema(database, SCHEMA, QUEUE_SCHEMA);
      return boss;
    });
    installed.catch(() => {
      installed = undefined;
    });
    return installed;
  }

  /** The jobs stay, and are looked for again with the next tick. */
  function trouble(error: unknown): void {
    if (!troubled && !closed) onTrouble(`Code that waits cannot be indexed now, and is tried again: ${asCairnError(error).message}`);
    troubled = true;
  }

  function start(): void {
    if (closed || timer) return;
    timer = setInterval(look, lookEveryMs);
    timer.unref();
    look();
  }

  /** Begins in every lane that has work and that nobody is in. One look at a time; what comes up meanwhile makes for another. */
  function look(): void {
    if (closed) return;
    lookAgain = looking !== undefined;
    looking ??= beginWhereWorkIs()
      .then(() => {
        troubled = false;
      }, trouble)
      .finally(() => {
        looking = undefined;
        if (lookAgain) look();
      });
  }

  async function beginWhereWorkIs(): Promise<void> {
    const boss = await install();
    const rows = await database.statement<{ lane: string }>(`SELECT DISTINCT lane FROM ${SCHEMA}.index_work`, []);
    const lanes = rows.map(({ lane }) => lane).sort(() => Math.random() - 0.5); // else the last ones would come last every time
    for (const lane of lanes) {
      if (closed || working.size >= lanesAtOnce) return;
      if (working.has(lane) || !(await locks.take(lockOf(lane)))) continue;
      const stop = new AbortController();
      const ended = workIn(boss, lane, stop.signal)
        .catch(trouble)
        .then(async (jobs) => {
          await locks.release(lockOf(lane));
          working.delete(lane);
          if (jobs) look(); // else what could not be begun would be tried without a pause
        });
      working.set(lane, { stop, ended });
    }
  }

  /** Returns the number of finished jobs. */
  async function workIn(boss: PgBoss, lane: string, signal: AbortSignal): Promise<number> {
    await takeBackOrphans(boss, lane);
    let jobs = 0;
    for (; !signal.aborted && !closed; jobs++) {
      const [job] = await boss.fetch<JobData>(lane);
      if (!job) break;
      await doJob(boss, lane, job.id, signal);
    }
    return jobs;
  }

  /** Only who has the lane's lock may do this: then no living process works on a job of the lane. */
  async function takeBackOrphans(boss: PgBoss, lane: string): Promise<void> {
    const active = `SELECT id FROM ${SCHEMA}.job WHERE name = $1 AND state = 'active'`;
    for (const { id } of await database.statement<{ id: string }>(active, [lane]))
      await boss.fail(lane, id, { reason: "The server that worked on it ended, several times over." });
    // What is over, or was not fetched for so long that it was given up.
    await database.statement(
      `DELETE FROM ${SCHEMA}.index_work w WHERE w.lane = $1
         AND NOT EXISTS (SELECT 1 FROM ${SCHEMA}.job j WHERE j.name = w.lane AND j.id = w.job_id AND j.state <= 'active')`,
      [lane],
      { idempotent: true },
    );
  }

  async function doJob(boss: PgBoss, lane: string, id: string, laneSignal: AbortSignal): Promise<void> {
    const row = await database.read(SCHEMA, (tx) =>
      tx.get<{ cancelled: boolean; work: Buffer }>("SELECT cancelled, work FROM index_work WHERE job_id = $1", id),
    );
    if (!row || row.cancelled) return end(boss, lane, id, { status: "cancelled" });
    const stop = new AbortController();
    const leave = () => stop.abort(LEFT);
    laneSignal.addEventListener("abort", leave, { once: true });
    const watch = setInterval(async () => {
      const [now] = await database
        .statement<{ cancelled: boolean }>(`SELECT cancelled FROM ${SCHEMA}.index_work WHERE job_id = $1`, [id])
        .catch(() => []);
      if (now?.cancelled) stop.abort();
    }, CANCEL_LOOK_MS);
    try {
      if (laneSignal.aborted) leave();
      const outcome = await perform(await unpack(row.work), stop.signal);
      // An interrupted job is not finished: the next holder of the lane repeats it.
      if (outcome.status === "cancelled" && stop.signal.reason === LEFT) return;
      await end(boss, lane, id, outcome);
    } finally {
      clearInterval(watch);
      laneSignal.removeEventListener("abort", leave);
    }
  }

  async function end(boss: PgBoss, lane: string, id: string, { status, result, reason }: IndexOutcome): Promise<void> {
    // As a text in the JSON: a path that cannot be stored is named in the result, and PostgreSQL's JSON takes no NUL.
    const output = { status, reason, result: result && JSON.stringify(result) };
    await database.write(
      SCHEMA,
      async (tx) => {
        await boss.complete(lane, id, output, { db: within(tx) });
        await tx.run("DELETE FROM index_work WHERE job_id = $1", id);
      },
      { idempotent: true },
    );
  }

  async function get(id: string): Promise<IndexJob | undefined> {
    if (!isJobId(id)) return undefined;
    const boss = await install();
    const job = await ours(boss.getJobById<JobData>(`code_${id[0]}`, id, { includeArchive: true }));
    if (!job) return undefined;
    const [row] = await database.statement<{ cancelled: boolean }>(`SELECT cancelled FROM ${SCHEMA}.index_work WHERE job_id = $1`, [id]);
    const output = (job.output ?? {}) as { status?: IndexJob["status"]; reason?: string; result?: string };
    const { projectPath, kind } = job.data;
    const times = {
      acceptedAt: job.createdOn.toISOString(),
      ...(job.startedOn && { startedAt: job.startedOn.toISOString() }),
      ...(job.completedOn && { finishedAt: job.completedOn.toISOString() }),
    };
    const common = { id, projectPath, kind, ...times };
    if (job.state === "completed")
      return {
        ...common,
        status: output.status ?? "completed",
        ...(output.reason !== undefined && { reason: output.reason }),
        ...(output.result !== undefined && { result: JSON.parse(output.result) }),
      };
    if (job.state === "active") return { ...common, status: "running" };
    if (job.state === "failed") return { ...common, status: "failed", reason: output.reason ?? "It could not be done." };
    return { ...common, status: row?.cancelled || job.state === "cancelled" ? "cancelled" : "pending" };
  }

  return {
    get,
    start: async () => start(),

    async add(work, sender) {
      if (closed) throw full("The server is shutting down.");
      const boss = await install();
      start();
      const lane = laneOf(work.projectPath);
      const id = newJobId(lane);
      const packed = await pack(work);
      const data: JobData = { projectPath: work.projectPath, kind: work.kind };
      const acceptedAt = await intake.write(SCHEMA, async (tx) => {
        // One after another, so that the capacity holds and the order of the jobs is the order of their acceptance.
        await tx.run("SELECT pg_advisory_xact_lock(hashtextextended('cairn index queue', 0))");
        const { waiting, own } = (await tx.get<{ waiting: number; own: number }>(
          "SELECT count(*) AS waiting, count(*) FILTER (WHERE sender = $1) AS own FROM index_work",
          sender ?? null,
        ))!;
        if (own >= shareOf(capacity)) throw full(`${own} batches of yours wait to be indexed already. Send this one again in a moment.`);
        if (waiting >= capacity) throw full(`${waiting} batches wait to be indexed already. Send this one again in a moment.`);
        if ((await boss.send(lane, data, { id, db: within(tx) })) === null) throw new Error("pg-boss did not take the job.");
        const added = await tx.get<{ at: string }>(
          "INSERT INTO index_work (job_id, lane, project_id, sender, work) VALUES ($1, $2, $3, $4, $5) RETURNING accepted_at AS at",
          id,
          lane,
          work.projectPath,
          sender ?? null,
          packed,
        );
        return added!.at;
      });
      look();
      return { id, projectPath: work.projectPath, kind: work.kind, status: "pending", acceptedAt };
    },

    async cancel(id) {
      const job = await get(id);
      if (!job || isFinished(job)) return job;
      await database.statement(`UPDATE ${SCHEMA}.index_work SET cancelled = true WHERE job_id = $1`, [id], { idempotent: true });
      let latest: IndexJob | undefined = job;
      await poll(
        async () => {
          latest = await get(id);
          return !latest || isFinished(latest) || undefined;
        },
        { everyMs: 50, limitMs: CANCEL_WAIT_MS },
      );
      return latest; // unfinished if another server runs it and has not seen the cancellation yet
    },

    async depth(projectPath) {
      await install();
      const { unfinished, running } = await database.read(SCHEMA, async (tx) => ({
        unfinished: (await tx.get<{ count: number }>(
          "SELECT count(*) FROM index_work WHERE $1::text IS NULL OR project_id = $1",
          projectPath ?? null,
        ))!.count,
        running: (await tx.get<{ count: number }>(
          "SELECT count(*) FROM index_work w JOIN job j ON j.name = w.lane AND j.id = w.job_id WHERE j.state = 'active' AND ($1::text IS NULL OR w.project_id = $1)",
          projectPath ?? null,
        ))!.count,
      }));
      return { pending: unfinished - running, running, capacity };
    },

    async close() {
      closed = true;
      clearInterval(timer);
      await looking;
      const ended = Promise.all([...working.values()].map((one) => one.ended));
      const deadline = setTimeout(() => {
        for (const { stop } of working.values()) stop.abort(LEFT);
      }, drainMs);
      await ended;
      clearTimeout(deadline);
      await locks.close();
      await installed?.then(
        (boss) => boss.stop({ graceful: false }),
        () => {},
      );
      await intake.close();
      await database.close();
    },
  };
}

interface JobData {
  readonly projectPath: string;
  readonly kind: IndexWork["kind"];
}

const LEFT = new DOMException("The work was left to another process.", "AbortError");

function full(message: string): CairnError {
  return new CairnError("unavailable", message, { retryAfterMs: 1_000 });
}

async function pack(work: IndexWork): Promise<Buffer> {
  return promisify(gzip)(JSON.stringify(work), { level: 1 });
}

async function unpack(packed: Buffer): Promise<IndexWork> {
  return JSON.parse((await promisify(gunzip)(packed)).toString("utf8"));
}
