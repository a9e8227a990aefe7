import { z } from "zod";
import { DOCTOR_DEFAULTS } from "../model/doctor.ts";
import { LIMITS, POSTGRES_DEFAULTS } from "../model/limits.ts";
import { WORKER_DEFAULTS } from "../model/run-worker.ts";
import { SYSTEM_DEFAULTS } from "../model/system-rules.ts";
import type { Camel } from "../operations/wire.ts";
import { isNetwork } from "../text/networks.ts";
import { allowProblem } from "../text/redact-allow.ts";

/** What is known about a key beyond its type and description. */
export interface SettingMeta {
  /** Never shown. */
  readonly secret?: boolean;
  /** A folder: `~` and relative paths are made absolute where the value was written. */
  readonly path?: boolean;
  /** Environment variables that also set it, after its own CAIRN_ name. */
  readonly env?: readonly string[];
  /**
   * A project file may set it without being trusted. Such a file comes with a cloned repository, so this holds only for keys that are
   * harmless with every value they accept: they neither say where data go, nor what runs, nor who is let in, nor what the user sees.
   */
  readonly fromProject?: true;
}

/** Registers what is known about a key. `schema.meta()` would copy each schema, and every command builds all of them. */
function setting<Schema extends z.ZodType>(schema: Schema, description: string, meta: SettingMeta = {}): Schema {
  z.globalRegistry.add(schema, { ...meta, description });
  return schema;
}

const url = (protocols: RegExp) => z.url({ protocol: protocols, error: "must be a URL such as http://127.0.0.1:6333" });

/** Regular expressions that cannot take long, each with what is wrong with it otherwise. */
const AllowPattern = z
  .string()
  .min(1)
  .max(500)
  .superRefine((pattern, context) => {
    const problem = allowProblem(pattern);
    if (problem) context.addIssue({ code: "custom", message: problem });
  });

/** Everything that can be configured, described once. Keys are written as in the file; the environment says CAIRN_HTTP_PORT for http.port. */
export const ConfigSchema = z.strictObject({
  data_dir: setting(z.string().min(1).default("~/.cairn"), "Folder of the SQLite files, keys and job state.", { path: true }),
  state_dir: setting(
    z.string().min(1).optional(),
    "Folder of system state files. Default: ./.state, or /var/lib/cairn when NODE_ENV is production.",
    { path: true },
  ),
  storage: setting(
    z
      .string()
      .regex(/^(sqlite|memory|postgres(ql)?:\/\/.+)$/, 'must be "sqlite", "memory" or a postgres:// URL')
      .default("sqlite"),
    "Where data lives: sqlite, memory (gone when the process ends) or a postgres:// URL.",
    { env: ["CAIRN_POSTGRES_URL"] },
  ),
  http: z.strictObject({
    host: setting(z.string().min(1).default("127.0.0.1"), "Address to listen on."),
    port: setting(z.int().min(0).max(65_535).default(7483), "Port to listen on; 0 takes any free one."),
    allowed_origins: setting(z.array(url(/^https?$/)).default([]), "Web pages that may call the server, such as http://localhost:5173."),
    trusted_proxies: setting(
      z.array(z.string().refine(isNetwork, "must be addresses or CIDR ranges such as 10.0.0.0/8")).default([]),
      "Addresses and CIDR ranges of reverse proxies. Their X-Forwarded-For selects the address for rate limits; it grants no access.",
    ),
    rate_limit: z.strictObject({
      per_second: setting(
        z.number().positive().max(1_000_000).default(50),
        "Requests per second that each key, or each address without a valid credential, may make over time.",
      ),
      burst: setting(z.int().min(1).max(1_000_000).default(100), "Requests that a caller may make at once before the rate counts."),
    }),
  }),
  api: z.strictObject({
    url: setting(
      url(/^https?$/).optional(),
      "Address of a Cairn server that does the work instead of this machine; files are still read here.",
    ),
    key: setting(z.string().min(1).optional(), "Key for that server.", { secret: true }),
  }),
  code: z.strictObject({
    queue_jobs: setting(
      z.int().min(1).max(100_000).optional(),
      "Batches of code that may wait to be indexed; more are refused until there is room. Default: 32, or 1000 on PostgreSQL.",
    ),
    batch_files: setting(z.int().min(1).max(1_000).default(10), "Files that are indexed in one step, at most.", { fromProject: true }),
    batch_bytes: setting(
      z.int().min(1).max(2_000_000).default(1_000_000),
      "Bytes that are indexed in one step, at most, but at least one file.",
      { fromProject: true },
    ),
    requests_per_second: setting(
      z.number().positive().max(10_000).default(10),
      "Requests per second that an index may send to the server of api.url. Without one it goes as fast as it can.",
    ),
    watch: setting(z.boolean().default(false), "Let cairn mcp index its project by itself, and again whenever files change."),
  }),
  mcp: z.strictObject({
    toolsets: setting(
      z.array(z.enum(["core", "code", "knowledge", "runs", "systems", "admin"])).default(["core"]),
      "Groups of tools that agents are offered. Each costs context, so only core is on.",
    ),
  }),
  log: z.strictObject({
    level: setting(
      z.enum(["trace", "debug", "info", "warn", "error", "silent"]).default("info"),
      "How much servers log, to stderr, as JSON lines.",
    ),
  }),
  telemetry: z.strictObject({
    enabled: setting(z.boolean().optional(), "Send OpenTelemetry traces and metrics. Default: when there is an endpoint."),
    endpoint: setting(url(/^https?$/).optional(), "OTLP/HTTP collector to send to. Without it, the OTEL_ variables decide."),
    service_name: setting(
      z.string().min(1).max(200).optional(),
      "Name under which telemetry appears. Default: OTEL_SERVICE_NAME, or cairn.",
    ),
    sample_ratio: setting(z.number().min(0).max(1).default(1), "Share of traces that is sent; a caller's own decision goes first."),
  }),
  embedder: z.strictObject({
    kind: setting(
      z.enum(["auto", "minilm", "static", "onnx", "openai", "tei", "none"]).default("auto"),
      "What turns text into vectors. auto takes the best local model that is installed; onnx runs a model of your own; none offers keyword search only.",
    ),
    share: setting(
      z.boolean().default(true),
      "One running process embeds with a local model for all others of the data folder, so that each need not load it.",
    ),
    model: setting(z.string().min(1).max(200).optional(), "Model name, where the kind has several."),
    base_url: setting(url(/^https?$/).optional(), "Address of the embedding service (openai, tei)."),
    api_key: setting(z.string().min(1).optional(), "Key of the embedding service. OPENAI_API_KEY counts only for kind openai.", {
      secret: true,
    }),
    dimensions: setting(z.int().min(1).max(4_000).optional(), "Length of the vectors, where the model lets one choose."),
    path: setting(z.string().min(1).optional(), "Folder of the model: config.json, tokenizer.json and model.onnx (onnx).", { path: true }),
    file: setting(z.string().min(1).max(500).optional(), "ONNX file in embedder.path (onnx). Default: model.onnx, or onnx/model.onnx."),
    pooling: setting(
      z.enum(["mean", "cls"]).optional(),
      "How the vectors of the tokens become one (onnx). Default: the output sentence_embedding, else 1_Pooling/config.json, else mean.",
    ),
    query_prefix: setting(
      z.string().max(1_000).optional(),
      "Text before each query (onnx), such as «query: ». Default: the prompts of config_sentence_transformers.json.",
    ),
    document_prefix: setting(
      z.string().max(1_000).optional(),
      "Text before each record (onnx), such as «passage: ». Default: the prompts of config_sentence_transformers.json.",
    ),
    max_tokens: setting(
      z.int().min(8).max(32_768).optional(),
      "Tokens of a text that the model reads (onnx). Default: what the model's files state, at most 512.",
    ),
  }),
  redaction: z.strictObject({
    allow: setting(
      z.array(AllowPattern).default([]),
      "Regular expressions of values that look like secrets and are none, such as keys of test accounts.",
    ),
    state: setting(z.boolean().default(false), "Also take secrets out of the states of runs and systems and of messages."),
  }),
  retention: z.strictObject({
    deleted_days: setting(
      z.int().min(1).max(LIMITS.deletedDaysMax).default(LIMITS.deletedDays),
      "Days that deleted checkpoints and knowledge can be restored. Then they are erased.",
    ),
  }),
  freshness: z.strictObject({
    limit_ms: setting(
      z.int().min(0).max(LIMITS.freshnessMsMax).default(LIMITS.freshnessMs),
      "Milliseconds that the freshness of one answer may take. What is not compared by then is unknown.",
    ),
  }),
  backup: z.strictObject({
    dir: setting(z.string().min(1).optional(), "Folder of the backups. Default: backups in data_dir.", {
      path: true,
    }),
  }),
  migrate: z.strictObject({
    allowed_hosts: setting(
      z
        .array(
          z
            .string()
            .regex(
              /^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/,
              "must be host names such as db.example.com or db.example.com:5433",
            ),
        )
        .default([]),
      "PostgreSQL hosts to which an API key for all projects may migrate over HTTP, with a port unless it is 5432. The command line may use any.",
    ),
  }),
  doctor: z.strictObject({
    window_seconds: setting(
      z.int().min(10).max(3_600).default(DOCTOR_DEFAULTS.windowSeconds),
      "The window over which writes and processes of a system are counted.",
    ),
    processes_max: setting(
      z.int().min(1).max(10_000).default(DOCTOR_DEFAULTS.processesMax),
      "A system used by more processes than this should be migrated to PostgreSQL.",
    ),
    size_max_bytes: setting(
      z.int().min(1).default(DOCTOR_DEFAULTS.sizeMaxBytes),
      "A database larger than this, its write-ahead log included, should be migrated to PostgreSQL.",
    ),
    rto_seconds: setting(
      z.number().positive().default(DOCTOR_DEFAULTS.rtoSeconds),
      "Recovery time objective: a system must be restored within this time. Measured by a trial restore.",
    ),
    rto_floor_seconds: setting(
      z.number().min(0).default(DOCTOR_DEFAULTS.rtoFloorSeconds),
      "A shorter objective requires PostgreSQL, whatever was measured.",
    ),
    compliance: z.strictObject({
      central_backup: setting(z.boolean().default(false), "Backups must be made centrally: systems should be migrated to PostgreSQL."),
      pitr: setting(z.boolean().default(false), "Any point in time must be recoverable: systems should be migrated to PostgreSQL."),
      audit_log: setting(z.boolean().default(false), "Access must be logged for audits: systems should be migrated to PostgreSQL."),
    }),
    free_disk_min_bytes: setting(
      z.int().min(0).default(DOCTOR_DEFAULTS.freeDiskMinBytes),
      "Less free room than this, or than the largest database takes, is a problem.",
    ),
    embedding_backlog_max: setting(
      z.int().min(0).default(DOCTOR_DEFAULTS.embeddingBacklogMax),
      "More records than this that wait for their vector are a problem.",
    ),
    stale_lease_seconds: setting(
      z.int().min(0).default(DOCTOR_DEFAULTS.staleLeaseSeconds),
      "A run that no process has continued for this long is a problem.",
    ),
  }),
  runs: z.strictObject({
    worker_concurrency: setting(
      z.int().min(1).max(LIMITS.workerConcurrency).default(WORKER_DEFAULTS.concurrency),
      "Runs that a worker executes at the same time.",
    ),
    worker_poll_ms: setting(
      z.int().min(10).max(60_000).default(WORKER_DEFAULTS.pollMs),
      "Milliseconds between two looks of a worker for work, on average.",
    ),
    worker_lease_seconds: setting(
      z
        .int()
        .min(1)
        .max(86_400)
        .default(WORKER_DEFAULTS.leaseMs / 1_000),
      "Seconds after which a worker on another machine takes over a run whose worker stopped answering.",
    ),
    worker_grace_seconds: setting(
      z
        .int()
        .min(0)
        .max(3_600)
        .default(WORKER_DEFAULTS.graceMs / 1_000),
      "Seconds that a stopping worker lets its current steps finish. The process ends after 15 seconds in any case.",
    ),
  }),
  systems: z.strictObject({
    commits_per_second: setting(
      z.number().min(0.01).max(100_000).default(SYSTEM_DEFAULTS.commitsPerSecond),
      "Write budget: commits per second of each component. Messages that come faster share a commit. Using more than 90 % of it fires write_rate.",
    ),
    snapshot_seconds: setting(
      z
        .number()
        .min(0)
        .max(86_400)
        .default(SYSTEM_DEFAULTS.snapshotEveryMs / 1_000),
      "Seconds between the snapshots that a running system takes of itself; 0 for none.",
    ),
    snapshots_kept: setting(
      z.int().min(1).max(LIMITS.systemSnapshotsKept).default(SYSTEM_DEFAULTS.snapshotsKept),
      "Snapshots of a system that are kept; older ones are removed.",
    ),
  }),
  postgres: z.strictObject({
    pool_max: setting(
      z.int().min(1).max(1_000).default(POSTGRES_DEFAULTS.poolMax),
      "Connections of each process for its calls. A process that indexes queued files has up to three more.",
    ),
    connection_lifetime_s: setting(
      z.int().min(10).max(86_400).default(POSTGRES_DEFAULTS.connectionLifetimeS),
      "Seconds after which a connection is replaced once it is idle.",
    ),
    connection_max_uses: setting(
      z.int().min(1).max(1_000_000_000).default(POSTGRES_DEFAULTS.connectionMaxUses),
      "Transactions after which a connection is replaced.",
    ),
    prepared_statements: setting(
      z.boolean().optional(),
      "Whether statements are prepared. Default: detected; a pooler such as PgBouncer turns them off.",
    ),
  }),
  qdrant: z.strictObject({
    url: setting(
      url(/^https?$/).optional(),
      "Qdrant server that answers semantic searches; the database keeps all vectors, Qdrant has copies.",
    ),
    api_key: setting(z.string().min(1).optional(), "Key of the Qdrant server.", { secret: true }),
  }),
});

/** The configuration that holds, as the code sees it. */
export type Config = Camel<z.output<typeof ConfigSchema>> & {
  readonly stateDir: string;
  /** Nobody chose `stateDir`: it is in the current folder. */
  readonly implicitStateDir: boolean;
};
