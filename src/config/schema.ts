import { z } from "zod";
import { DOCTOR_DEFAULTS } from "../model/doctor.ts";
import { LIMITS, POSTGRES_DEFAULTS } from "../model/limits.ts";
import { once } from "../model/once.ts";
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

/** One key as it is described below. */
export interface DescribedSetting<Value> extends SettingMeta {
  readonly description: string;
  /** Returns the schema of a given value. A command that is given none builds none. */
  readonly schema: () => z.ZodType;
  readonly default: Value;
}

/** Describes a key. Without a default it may be absent. */
function setting<Schema extends z.ZodType>(
  schema: () => Schema,
  description: string,
  known: SettingMeta & { readonly default: NoInfer<z.output<Schema>> },
): DescribedSetting<z.output<Schema>>;
function setting<Schema extends z.ZodType>(
  schema: () => Schema,
  description: string,
  known?: SettingMeta,
): DescribedSetting<z.output<Schema> | undefined>;
function setting(schema: () => z.ZodType, description: string, known: SettingMeta & { readonly default?: unknown } = {}) {
  return { default: undefined, ...known, description, schema: once(schema) };
}

const url = (protocols: RegExp) => z.url({ protocol: protocols, error: "must be a URL such as http://127.0.0.1:6333" });

/** Regular expressions that cannot take long, each with what is wrong with it otherwise. */
const allowPattern = () =>
  z
    .string()
    .min(1)
    .max(500)
    .superRefine((pattern, context) => {
      const problem = allowProblem(pattern);
      if (problem) context.addIssue({ code: "custom", message: problem });
    });

/** Everything that can be configured, described once. Keys are written as in the file; the environment says CAIRN_HTTP_PORT for http.port. */
export const CONFIG = {
  data_dir: setting(() => z.string().min(1), "Folder of the SQLite files, keys and job state.", { default: "~/.cairn", path: true }),
  state_dir: setting(
    () => z.string().min(1),
    "Folder of system state files. Default: ./.state, or /var/lib/cairn when NODE_ENV is production.",
    { path: true },
  ),
  storage: setting(
    () => z.string().regex(/^(sqlite|memory|postgres(ql)?:\/\/.+)$/, 'must be "sqlite", "memory" or a postgres:// URL'),
    "Where data lives: sqlite, memory (gone when the process ends) or a postgres:// URL.",
    { default: "sqlite", env: ["CAIRN_POSTGRES_URL"] },
  ),
  http: {
    host: setting(() => z.string().min(1), "Address to listen on.", { default: "127.0.0.1" }),
    port: setting(() => z.int().min(0).max(65_535), "Port to listen on; 0 takes any free one.", { default: 7483 }),
    allowed_origins: setting(() => z.array(url(/^https?$/)), "Web pages that may call the server, such as http://localhost:5173.", {
      default: [],
    }),
    trusted_proxies: setting(
      () => z.array(z.string().refine(isNetwork, "must be addresses or CIDR ranges such as 10.0.0.0/8")),
      "Addresses and CIDR ranges of reverse proxies. Their X-Forwarded-For selects the address for rate limits; it grants no access.",
      { default: [] },
    ),
    rate_limit: {
      per_second: setting(
        () => z.number().positive().max(1_000_000),
        "Requests per second that each key, or each address without a valid credential, may make over time.",
        { default: 50 },
      ),
      burst: setting(() => z.int().min(1).max(1_000_000), "Requests that a caller may make at once before the rate counts.", {
        default: 100,
      }),
    },
  },
  api: {
    url: setting(() => url(/^https?$/), "Address of a Cairn server that does the work instead of this machine; files are still read here."),
    key: setting(() => z.string().min(1), "Key for that server.", { secret: true }),
  },
  code: {
    queue_jobs: setting(
      () => z.int().min(1).max(100_000),
      "Batches of code that may wait to be indexed; more are refused until there is room. Default: 32, or 1000 on PostgreSQL.",
    ),
    reuse: setting(
      () => z.boolean(),
      "Whether the first index of a project takes over files that another project of this data folder has indexed.",
      { default: true },
    ),
    batch_files: setting(() => z.int().min(1).max(1_000), "Files that are indexed in one step, at most.", {
      default: 10,
      fromProject: true,
    }),
    batch_bytes: setting(() => z.int().min(1).max(2_000_000), "Bytes that are indexed in one step, at most, but at least one file.", {
      default: 1_000_000,
      fromProject: true,
    }),
    requests_per_second: setting(
      () => z.number().positive().max(10_000),
      "Requests per second that an index may send to the server of api.url. Without one it goes as fast as it can.",
      { default: 10 },
    ),
    watch: setting(() => z.boolean(), "Let cairn mcp index its project by itself, and again whenever files change.", { default: false }),
  },
  mcp: {
    toolsets: setting(
      () => z.array(z.enum(["core", "code", "knowledge", "runs", "systems", "admin"])),
      "Groups of tools that agents are offered. Each costs context, so only core is on.",
      { default: ["core"] },
    ),
  },
  log: {
    level: setting(() => z.enum(["trace", "debug", "info", "warn", "error", "silent"]), "How much servers log, to stderr, as JSON lines.", {
      default: "info",
    }),
  },
  telemetry: {
    enabled: setting(() => z.boolean(), "Send OpenTelemetry traces and metrics. Default: when there is an endpoint."),
    endpoint: setting(() => url(/^https?$/), "OTLP/HTTP collector to send to. Without it, the OTEL_ variables decide."),
    service_name: setting(() => z.string().min(1).max(200), "Name under which telemetry appears. Default: OTEL_SERVICE_NAME, or cairn."),
    sample_ratio: setting(() => z.number().min(0).max(1), "Share of traces that is sent; a caller's own decision goes first.", {
      default: 1,
    }),
  },
  embedder: {
    kind: setting(
      () => z.enum(["auto", "minilm", "static", "onnx", "openai", "tei", "none"]),
      "What turns text into vectors. auto takes the best local model that is installed; onnx runs a model of your own; none offers keyword search only.",
      { default: "auto" },
    ),
    share: setting(
      () => z.boolean(),
      "One running process embeds with a local model for all others of the data folder, so that each need not load it.",
      { default: true },
    ),
    model: setting(() => z.string().min(1).max(200), "Model name, where the kind has several."),
    base_url: setting(() => url(/^https?$/), "Address of the embedding service (openai, tei)."),
    api_key: setting(() => z.string().min(1), "Key of the embedding service. OPENAI_API_KEY counts only for kind openai.", {
      secret: true,
    }),
    dimensions: setting(() => z.int().min(1).max(4_000), "Length of the vectors, where the model lets one choose."),
    path: setting(() => z.string().min(1), "Folder of the model: config.json, tokenizer.json and model.onnx (onnx).", { path: true }),
    file: setting(() => z.string().min(1).max(500), "ONNX file in embedder.path (onnx). Default: model.onnx, or onnx/model.onnx."),
    pooling: setting(
      () => z.enum(["mean", "cls"]),
      "How the vectors of the tokens become one (onnx). Default: the output sentence_embedding, else 1_Pooling/config.json, else mean.",
    ),
    query_prefix: setting(
      () => z.string().max(1_000),
      "Text before each query (onnx), such as «query: ». Default: the prompts of config_sentence_transformers.json.",
    ),
    document_prefix: setting(
      () => z.string().max(1_000),
      "Text before each record (onnx), such as «passage: ». Default: the prompts of config_sentence_transformers.json.",
    ),
    max_tokens: setting(
      () => z.int().min(8).max(32_768),
      "Tokens of a text that the model reads (onnx). Default: what the model's files state, at most 512.",
    ),
  },
  redaction: {
    allow: setting(
      () => z.array(allowPattern()),
      "Regular expressions of values that look like secrets and are none, such as keys of test accounts.",
      { default: [] },
    ),
    state: setting(() => z.boolean(), "Also take secrets out of the states of runs and systems and of messages.", { default: false }),
  },
  retention: {
    deleted_days: setting(
      () => z.int().min(1).max(LIMITS.deletedDaysMax),
      "Days that deleted checkpoints and knowledge can be restored. Then they are erased.",
      { default: LIMITS.deletedDays },
    ),
  },
  freshness: {
    limit_ms: setting(
      () => z.int().min(0).max(LIMITS.freshnessMsMax),
      "Milliseconds that the freshness of one answer may take. What is not compared by then is unknown.",
      { default: LIMITS.freshnessMs },
    ),
  },
  backup: {
    dir: setting(() => z.string().min(1), "Folder of the backups. Default: backups in data_dir.", { path: true }),
  },
  migrate: {
    allowed_hosts: setting(
      () =>
        z.array(
          z
            .string()
            .regex(
              /^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/,
              "must be host names such as db.example.com or db.example.com:5433",
            ),
        ),
      "PostgreSQL hosts to which an API key for all projects may migrate over HTTP, with a port unless it is 5432. The command line may use any.",
      { default: [] },
    ),
  },
  doctor: {
    window_seconds: setting(() => z.int().min(10).max(3_600), "The window over which writes and processes of a system are counted.", {
      default: DOCTOR_DEFAULTS.windowSeconds,
    }),
    processes_max: setting(
      () => z.int().min(1).max(10_000),
      "A system used by more processes than this should be migrated to PostgreSQL.",
      { default: DOCTOR_DEFAULTS.processesMax },
    ),
    size_max_bytes: setting(
      () => z.int().min(1),
      "A database larger than this, its write-ahead log included, should be migrated to PostgreSQL.",
      { default: DOCTOR_DEFAULTS.sizeMaxBytes },
    ),
    rto_seconds: setting(
      () => z.number().positive(),
      "Recovery time objective: a system must be restored within this time. Measured by a trial restore.",
      { default: DOCTOR_DEFAULTS.rtoSeconds },
    ),
    rto_floor_seconds: setting(() => z.number().min(0), "A shorter objective requires PostgreSQL, whatever was measured.", {
      default: DOCTOR_DEFAULTS.rtoFloorSeconds,
    }),
    compliance: {
      central_backup: setting(() => z.boolean(), "Backups must be made centrally: systems should be migrated to PostgreSQL.", {
        default: false,
      }),
      pitr: setting(() => z.boolean(), "Any point in time must be recoverable: systems should be migrated to PostgreSQL.", {
        default: false,
      }),
      audit_log: setting(() => z.boolean(), "Access must be logged for audits: systems should be migrated to PostgreSQL.", {
        default: false,
      }),
    },
    free_disk_min_bytes: setting(() => z.int().min(0), "Less free room than this, or than the largest database takes, is a problem.", {
      default: DOCTOR_DEFAULTS.freeDiskMinBytes,
    }),
    embedding_backlog_max: setting(() => z.int().min(0), "More records than this that wait for their vector are a problem.", {
      default: DOCTOR_DEFAULTS.embeddingBacklogMax,
    }),
    stale_lease_seconds: setting(() => z.int().min(0), "A run that no process has continued for this long is a problem.", {
      default: DOCTOR_DEFAULTS.staleLeaseSeconds,
    }),
  },
  runs: {
    worker_concurrency: setting(() => z.int().min(1).max(LIMITS.workerConcurrency), "Runs that a worker executes at the same time.", {
      default: WORKER_DEFAULTS.concurrency,
    }),
    worker_poll_ms: setting(() => z.int().min(10).max(60_000), "Milliseconds between two looks of a worker for work, on average.", {
      default: WORKER_DEFAULTS.pollMs,
    }),
    worker_lease_seconds: setting(
      () => z.int().min(1).max(86_400),
      "Seconds after which a worker on another machine takes over a run whose worker stopped answering.",
      { default: WORKER_DEFAULTS.leaseMs / 1_000 },
    ),
    worker_grace_seconds: setting(
      () => z.int().min(0).max(3_600),
      "Seconds that a stopping worker lets its current steps finish. The process ends after 15 seconds in any case.",
      { default: WORKER_DEFAULTS.graceMs / 1_000 },
    ),
  },
  systems: {
    commits_per_second: setting(
      () => z.number().min(0.01).max(100_000),
      "Write budget: commits per second of each component. Messages that come faster share a commit. Using more than 90 % of it fires write_rate.",
      { default: SYSTEM_DEFAULTS.commitsPerSecond },
    ),
    snapshot_seconds: setting(
      () => z.number().min(0).max(86_400),
      "Seconds between the snapshots that a running system takes of itself; 0 for none.",
      { default: SYSTEM_DEFAULTS.snapshotEveryMs / 1_000 },
    ),
    snapshots_kept: setting(
      () => z.int().min(1).max(LIMITS.systemSnapshotsKept),
      "Snapshots of a system that are kept; older ones are removed.",
      { default: SYSTEM_DEFAULTS.snapshotsKept },
    ),
  },
  postgres: {
    pool_max: setting(
      () => z.int().min(1).max(1_000),
      "Connections of each process for its calls. A process that indexes queued files has up to three more.",
      { default: POSTGRES_DEFAULTS.poolMax },
    ),
    connection_lifetime_s: setting(() => z.int().min(10).max(86_400), "Seconds after which a connection is replaced once it is idle.", {
      default: POSTGRES_DEFAULTS.connectionLifetimeS,
    }),
    connection_max_uses: setting(() => z.int().min(1).max(1_000_000_000), "Transactions after which a connection is replaced.", {
      default: POSTGRES_DEFAULTS.connectionMaxUses,
    }),
    prepared_statements: setting(
      () => z.boolean(),
      "Whether statements are prepared. Default: detected; a pooler such as PgBouncer turns them off.",
    ),
  },
  qdrant: {
    url: setting(() => url(/^https?$/), "Qdrant server that answers semantic searches; the database keeps all vectors, Qdrant has copies."),
    api_key: setting(() => z.string().min(1), "Key of the Qdrant server.", { secret: true }),
  },
};

type Values<Tree> = { readonly [Key in keyof Tree]: Tree[Key] extends DescribedSetting<infer Value> ? Value : Values<Tree[Key]> };

/** The configuration that holds, as the code sees it. */
export type Config = Camel<Values<typeof CONFIG>> & {
  readonly stateDir: string;
  /** Nobody chose `stateDir`: it is in the current folder. */
  readonly implicitStateDir: boolean;
};
