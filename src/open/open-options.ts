import type { DoctorSettings } from "../model/doctor.ts";
import type { Clock } from "../model/ids.ts";
import type { PostgresSettings } from "../model/limits.ts";
import type { Embedder } from "../ports/embedder.ts";
import type { Storage } from "../ports/storage.ts";
import type { RunSettings } from "../runs/service.ts";
import type { SystemSettings } from "../systems/service.ts";
import type { RedactionOptions } from "../text/redact-state.ts";
import type { EmbedderChoice } from "./open-embedders.ts";
import type { PostgresPools } from "./postgres-pools.ts";

/** How to open Cairn. Everything has a default: SQLite files under the home folder and the bundled embedding model. */
export interface OpenOptions {
  /**
   * `sqlite` (default), `memory`, a `postgres://` URL, or a `Storage` of your own for projects: see docs/adding-a-store.md. Your own
   * stays open when Cairn closes, and runs, systems and API keys stay in files.
   */
  readonly storage?: "sqlite" | "memory" | (string & {}) | Storage;
  /** Where SQLite files and API keys live; default `~/.cairn`. */
  readonly dataDir?: string;
  /** Where the SQLite files of systems live; default `.state` in the current folder, `/var/lib/cairn` in production. */
  readonly stateDir?: string | undefined;
  /** `stateDir` is the default of a caller who did not choose it. Records of migrations in it are refused: it may come with a repository. */
  readonly implicitStateDir?: boolean | undefined;
  /** `deletedDays`: how long deleted records can be restored; default 30. */
  readonly retention?: { readonly deletedDays?: number | undefined } | undefined;
  /** `limitMs`: how long the comparison of one answer with the code index may take; default 5. */
  readonly freshness?: { readonly limitMs?: number | undefined } | undefined;
  /** Where backups are kept; default `backups` in `dataDir`. */
  readonly backupDir?: string | undefined;
  /** Thresholds of the doctor. Each has a default. */
  readonly doctor?: Partial<Omit<DoctorSettings, "commitsPerSecond">> | undefined;
  /** Settings of the workers that `cairn.runs.worker` starts. */
  readonly runs?: RunSettings | undefined;
  /** Write budget and snapshots of the systems that `cairn.systems.open` opens. */
  readonly systems?: SystemSettings | undefined;
  /** The connections of this process to PostgreSQL: how many, when they are replaced, and whether statements are prepared. */
  readonly postgres?: PostgresSettings | undefined;
  /** Which model to embed with, or embedders of your own in order of preference. */
  readonly embedder?: EmbedderChoice | readonly Embedder[];
  /**
   * Shares the local embedding models with other processes that use the same `dataDir`: a process that may `lead` can be elected to embed
   * for the others, one that may `use` only asks it. Default: this process loads its own models.
   */
  readonly shareModels?: { readonly role: "lead" | "use"; readonly runtimeDir?: string | undefined } | undefined;
  /** A Qdrant server that answers semantic searches. Its vectors are copies: the database keeps them all. */
  readonly qdrant?: { readonly url?: string | undefined; readonly apiKey?: string | undefined } | undefined;
  /**
   * Secrets are taken out before a text is stored or embedded; `allow` holds regular expressions of values that are none. States of
   * runs and systems are stored as they are unless `state` is true.
   */
  readonly redaction?: RedactionOptions | undefined;
  readonly code?: {
    /** Batches of code that may wait to be indexed; more are refused until there is room. */
    readonly queueJobs?: number | undefined;
  };
  /** Hosts, with a port unless it is 5432, to which callers with an API key may migrate databases; default none. */
  readonly migrate?: { readonly allowedHosts?: readonly string[] | undefined } | undefined;
  /** Receives each notice once, such as a model that cannot run here; default: a process warning. */
  readonly onNotice?: (message: string) => void;
  readonly now?: Clock;
  readonly newId?: () => string;
}

/** Where this process keeps its files, and its clock: what every part that is opened needs. */
export interface OpenContext {
  readonly options: OpenOptions;
  readonly dataDir: string;
  readonly stateDir: string;
  readonly backupDir: string;
  readonly now: Clock;
  readonly newId: () => string;
  readonly onNotice: (message: string) => void;
  readonly pools: PostgresPools;
}

/** Which kind of storage the projects are in. `own` is a `Storage` that the caller has made. */
export function storageKind({ storage = "sqlite" }: OpenOptions): "sqlite" | "memory" | "postgres" | "own" {
  if (typeof storage !== "string") return "own";
  return storage === "memory" ? "memory" : storage === "sqlite" ? "sqlite" : "postgres";
}
