import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type PgBoss from "pg-boss";
import { asCairnError, CairnError } from "../../../model/errors.ts";
import { type IndexJob, type IndexOutcome, type IndexWork, isFinished } from "../../../model/index-job.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import { type IndexQueue, type PerformIndexWork, shareOf } from "../../../ports/index-queue.ts";
import { poll } from "../../../scheduling/retry.ts";
import type { PostgresDatabase } from "../driver/driver.ts";
import { translatePostgresError } from "../driver/errors.ts";
import { ensureSchema } from "../driver/schema-version.ts";
import { laneOf, newJobId, openBoss, SCHEMA, within } from "./boss.ts";
import { LANE_LEASES_SQL, laneLeases } from "./lane-leases.ts";

export interface PostgresIndexQueueOptions {
  /** Connections for running jobs. */
  readonly database: PostgresDatabase;
  /** Connections for new jobs: many of them must not block running ones. */
  readonly intake: PostgresDatabase;
  readonly perform: PerformIndexWork;
  /** Maximum number of unfinished jobs, over all servers. */
  readonly capacity?: number | undefined;
  /** Lanes that this process runs at the same time. */
  readonly lanesAtOnce?: number;
  /** Milliseconds between two polls for jobs that other processes added. */
  readonly pollEveryMs?: number;
  /** Milliseconds that `close` waits for running jobs; then it interrupts them and they return to the queue. */
  readonly drainMs?: number;
  /** Milliseconds after which the lanes of a killed process are free. */
  readonly leaseMs?: number;
  /** Called with the first failure, and again only after a success. */
  readonly onFailure?: ((message: string) => void) | undefined;
}

const CAPACITY = 1_000;
const CANCEL_POLL_MS = 300;
const CANCEL_WAIT_MS = 10_000;

/** pg-boss stores the jobs. Their files are in a table of their own and deleted with the end of the job, so that finished jobs stay small. */
const QUEUE_SCHEMA: DatabaseSchema = {
  version: 2,
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
${LANE_LEASES_SQL}
  `,
};

const isJobId = (id: string) => /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id);

interface Running {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** Returns an index queue that all servers of a database share. A job leaves it only after its files are in the index. */
export function postgresIndexQueue({
  database,
  intake,
  perform,
  capacity = CAPACITY,
  lanesAtOnce = 2,
  pollEveryMs = 1_000,
  drainMs = 10_000,
  leaseMs = 6_000,
  onFailure = () => {},
}: PostgresIndexQueueOptions): IndexQueue {
  const working = new Map<string, Running>(); // by lane
  const leases = laneLeases({ database, schema: SCHEMA, leaseMs, onLoss: (lane) => working.get(lane)?.stop.abort(LANE_LOST) });
  let installed: Promise<PgBoss> | undefined;
  let polling: Promise<void> | undefined;
  let pollAgain = false;
  let failing = false;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  /** Translates errors that pg-boss passes on from the PostgreSQL driver. */
  function translateErrors<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw translatePostgresError(error, database.where, "undone");
    });
  }

  function install(): Promise<PgBoss> {
    installed ??= translateErrors(openBoss(database)).then(async (boss) => {
      await ensureSchema(database, SCHEMA, QUEUE_SCHEMA);
      return boss;
    });
    installed.catch(() => {
      installed = undefined;
    });
    return installed;
  }

  /** Reports the first of several failures. The jobs stay queued, and the next poll retries them. */
  function reportFailure(error: unknown): void {
    if (!failing && !closed) onFailure(`Indexing of queued files failed and will be retried: ${asCairnError(error).message}`);
    failing = true;
  }

  function start(): void {
    if (closed || timer) return;
    timer = setInterval(pollLanes, pollEveryMs);
    timer.unref();
    pollLanes();
  }

  /** Starts every idle lane that has jobs. One poll runs at a time; a request during a poll starts another one after it. */
  function pollLanes(): void {
    if (closed) return;
    pollAgain = polling !== undefined;
    polling ??= startIdleLanes()
      .then(() => {
        failing = false;
      }, reportFailure)
      .finally(() => {
        polling = undefined;
        if (pollAgain) pollLanes();
      });
  }

  async function startIdleLanes(): Promise<void> {
    const boss = await install();
    const rows = await database.statement<{ lane: string }>(`SELECT DISTINCT lane FROM ${SCHEMA}.index_work`, []);
    const lanes = rows.map(({ lane }) => lane).sort(() => Math.random() - 0.5); // a fixed order would starve the last lanes
    for (const lane of lanes) {
      if (closed || working.size >= lanesAtOnce) return;
      if (working.has(lane) || !(await leases.take(lane))) continue;
      const stop = new AbortController();
      const ended = runLane(boss, lane, stop.signal)
        .catch(reportFailure)
        .then(async (jobs) => {
          await leases.release(lane);
          working.delete(lane);
          if (jobs) pollLanes(); // a lane that could not start waits for the next tick
        });
      working.set(lane, { stop, ended });
    }
  }

  /** Runs the jobs of a lane until it is empty and returns their number. */
  async function runLane(boss: PgBoss, lane: string, signal: AbortSignal): Promise<number> {
    await requeueOrphans(boss, lane);
    let jobs = 0;
    for (; !signal.aborted && !closed; jobs++) {
      const [job] = await boss.fetch<JobData>(lane);
      if (!job) break;
      await runJob(boss, lane, job.id, signal);
    }
    return jobs;
  }

  /** Requeues the jobs of dead processes. The caller must hold the lane's lease: an active job then belongs to no live process. */
  async function requeueOrphans(boss: PgBoss, lane: string): Promise<void> {
    const active = `SELECT id FROM ${SCHEMA}.job WHERE name = $1 AND state = 'active'`;
    for (const { id } of await database.statement<{ id: string }>(active, [lane]))
      await boss.fail(lane, id, { reason: "The server process ended during this job several times." });
    // Deletes the files of jobs that ended or whose retention expired.
    await database.statement(
      `DELETE FROM ${SCHEMA}.index_work w WHERE w.lane = $1
         AND NOT EXISTS (SELECT 1 FROM ${SCHEMA}.job j WHERE j.name = w.lane AND j.id = w.job_id AND j.state <= 'active')`,
      [lane],
      { idempotent: true },
    );
  }

  async function runJob(boss: PgBoss, lane: string, id: string, laneSignal: AbortSignal): Promise<void> {
    const row = await database.read(SCHEMA, (tx) =>
      tx.get<{ cancelled: boolean; work: Buffer }>("SELECT cancelled, work FROM index_work WHERE job_id = $1", id),
    );
    if (!row || row.cancelled) return finishJob(boss, lane, id, { status: "cancelled" });
    const stop = new AbortController();
    const interrupt = () => stop.abort(LANE_LOST);
    laneSignal.addEventListener("abort", interrupt, { once: true });
    const watch = setInterval(async () => {
      const [now] = await database
        .statement<{ cancelled: boolean }>(`SELECT cancelled FROM ${SCHEMA}.index_work WHERE job_id = $1`, [id])
        .catch(() => []);
      if (now?.cancelled) stop.abort();
    }, CANCEL_POLL_MS);
    try {
      if (laneSignal.aborted) interrupt();
      const outcome = await perform(await unpack(row.work), stop.signal);
      // An interrupted job is not finished: the next holder of the lane repeats it.
      if (outcome.status === "cancelled" && stop.signal.reason === LANE_LOST) return;
      await finishJob(boss, lane, id, outcome);
    } finally {
      clearInterval(watch);
      laneSignal.removeEventListener("abort", interrupt);
    }
  }

  async function finishJob(boss: PgBoss, lane: string, id: string, { status, result, reason }: IndexOutcome): Promise<void> {
    // A JSON string inside the JSON: the result may name a path with a NUL character, which jsonb refuses.
    const output = { status, reason, result: result && JSON.stringify(result) };
    await database.write(
      SCHEMA,
      async (tx) => {
        await boss.complete(lane, id, output, { db: within(tx) });
        // Another process may have taken the lane and queued the job again. It then needs the files, to repeat the job.
        await tx.run(
          "DELETE FROM index_work w USING job j WHERE w.job_id = $1 AND j.name = w.lane AND j.id = w.job_id AND j.state > 'active'",
          id,
        );
      },
      { idempotent: true },
    );
  }

  async function get(id: string): Promise<IndexJob | undefined> {
    if (!isJobId(id)) return undefined;
    const boss = await install();
    const job = await translateErrors(boss.getJobById<JobData>(`code_${id[0]}`, id, { includeArchive: true }));
    if (!job) return undefined;
    const [row] = await database.statement<{ cancelled: boolean }>(`SELECT cancelled FROM ${SCHEMA}.index_work WHERE job_id = $1`, [id]);
    const output = (job.output ?? {}) as { status?: IndexJob["status"]; reason?: string; result?: string };
    const { projectPath, kind } = job.data;
    const times = {
      acceptedAt: timeOf(job.createdOn),
      ...(job.startedOn && { startedAt: timeOf(job.startedOn) }),
      ...(job.completedOn && { finishedAt: timeOf(job.completedOn) }),
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
    if (job.state === "failed") return { ...common, status: "failed", reason: output.reason ?? "The job failed." };
    return { ...common, status: row?.cancelled || job.state === "cancelled" ? "cancelled" : "pending" };
  }

  return {
    get,
    start: async () => start(),

    async add(work, sender) {
      if (closed) throw queueError("The server is shutting down.");
      const boss = await install();
      start();
      const lane = laneOf(work.projectPath);
      const id = newJobId(lane);
      const packed = await pack(work);
      const data: JobData = { projectPath: work.projectPath, kind: work.kind };
      const acceptedAt = await intake.write(SCHEMA, async (tx) => {
        // The lock serializes additions, so that the capacity holds and jobs run in the order of acceptance.
        await tx.run("SELECT pg_advisory_xact_lock(hashtextextended('cairn index queue', 0))");
        const { queued, own } = (await tx.get<{ queued: number; own: number }>(
          "SELECT count(*) AS queued, count(*) FILTER (WHERE sender = $1) AS own FROM index_work",
          sender ?? null,
        ))!;
        if (own >= shareOf(capacity)) throw queueError(`You already have ${own} queued batches. Send this one again in a moment.`);
        if (queued >= capacity) throw queueError(`The index queue is full (${queued} batches). Send this one again in a moment.`);
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
      pollLanes();
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
      await polling;
      const ended = Promise.all([...working.values()].map((one) => one.ended));
      const deadline = setTimeout(() => {
        for (const { stop } of working.values()) stop.abort(LANE_LOST);
      }, drainMs);
      await ended;
      clearTimeout(deadline);
      await leases.close();
      await installed?.then(
        (boss) => boss.stop({ graceful: false }),
        () => {},
      );
    },
  };
}

/** The driver returns times as text, whatever the types of pg-boss say. */
const timeOf = (time: Date) => time as unknown as string;

interface JobData {
  readonly projectPath: string;
  readonly kind: IndexWork["kind"];
}

const LANE_LOST = new DOMException("The lane was released to another process.", "AbortError");

function queueError(message: string): CairnError {
  return new CairnError("unavailable", message, { retryAfterMs: 1_000 });
}

async function pack(work: IndexWork): Promise<Buffer> {
  return promisify(gzip)(JSON.stringify(work), { level: 1 });
}

async function unpack(packed: Buffer): Promise<IndexWork> {
  return JSON.parse((await promisify(gunzip)(packed)).toString("utf8"));
}
