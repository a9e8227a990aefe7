import { DELETED_COLUMNS, readDeletedRow } from "../model/deleted-record.ts";
import {
  CHECKPOINT_COLUMNS,
  checkpointText,
  KNOWLEDGE_COLUMNS,
  type RawRow,
  readCheckpoint,
  readKnowledge,
  type StoredRecord,
} from "../model/stored-record.ts";
import type { Column, ColumnType, DatabaseKind, DatabaseShape, NamedValues, TableShape } from "../ports/migration.ts";
import { knowledgeTerms } from "../text/knowledge-text.ts";

/** A project database, or the shared one. Referenced tables precede the tables that refer to them. */
export const PROJECT_SHAPE = database("project", {
  tables: [
    table("project_info", "id", { id: "int4", project_id: "text", created_at: "time" }),
    {
      ...table("checkpoints", "id", {
        key: "int8",
        id: "text",
        summary: "text",
        description: "text",
        context: "text",
        anchors: "text",
        superseded_by: "text",
        tags: "texts",
        folded_tags: "texts",
        token_count: "int4",
        pieces: "int4",
        created_at: "time",
        updated_at: "time",
        created_order: "time",
        updated_order: "time",
        revision: "int4",
        checksum: "text",
      }),
      counter: "key",
      damage: (row) => damageOf(readCheckpoint(rawRow(row, CHECKPOINT_COLUMNS, { tags: row.value("tags") }), "")),
      fullText: ({ text, value }) =>
        `${checkpointText({ summary: text("summary"), description: text("description") })} ${(value("tags") as string[]).join(" ")}`,
    },
    {
      ...table("embedding_versions", "version_id", {
        version_id: "int4",
        collection: "text",
        model_name: "text",
        model_version: "text",
        embedding_dimension: "int4",
        is_current: "bool",
        created_at: "time",
      }),
      counter: "version_id",
    },
    {
      ...table("knowledge", "id", {
        key: "int8",
        id: "text",
        kind: "text",
        category: "text",
        subcategory: "text",
        question: "text",
        answer: "text",
        content_hash: "text",
        signature: "text",
        pieces: "int4",
        successes: "int8",
        uses: "int8",
        outdated: "int8",
        source: "text",
        anchors: "text",
        superseded_by: "text",
        created_at: "time",
        updated_at: "time",
        created_order: "time",
        revision: "int4",
        checksum: "text",
      }),
      counter: "key",
      damage: (row) => damageOf(readKnowledge(rawRow(row, KNOWLEDGE_COLUMNS))),
      fullText: ({ text }) =>
        knowledgeTerms({
          kind: text("kind"),
          category: text("category"),
          subcategory: text("subcategory"),
          question: text("question"),
          answer: text("answer"),
        }),
    },
    {
      ...table("deleted_records", "collection id", {
        collection: "text",
        id: "text",
        deleted_at: "time",
        record: "text",
        checksum: "text",
      }),
      damage: (row) => damageOf(readDeletedRow(rawRow(row, DELETED_COLUMNS))),
    },
    table("idempotency_keys", "key", { key: "text", record_id: "text", used_at: "time" }),
    table("vectors", "version_id key", { version_id: "int4", key: "int8", collection: "text", vector: "vector" }),
    {
      ...table("quarantined_records", "quarantine_id", {
        quarantine_id: "int8",
        collection: "text",
        record_id: "text",
        reason: "text",
        quarantined_at: "time",
        raw: "text",
      }),
      counter: "quarantine_id",
    },
    table("vector_index", "collection", { collection: "text", name: "text" }),
    {
      ...table("vector_outbox", "collection version_id key", { collection: "text", version_id: "int4", key: "int8", change: "int8" }),
      counter: "change",
    },
  ],
  derived: [
    "schema_migrations",
    "events", // their positions mean nothing in another database: streams get a reset
    "checkpoint_tags", // on PostgreSQL, columns of the checkpoints
    "embedding_records", // a mirror of the knowledge and its vectors, rebuilt in the target
    "vector_collections",
    "vector_delta",
    "vector_segments",
    "vector_segment_bodies",
    "checkpoint_fts",
    "knowledge_fts",
    // The code index is derived from the files of the project: an index run builds it again on the other side.
    "code_generation",
    "indexed_files",
    "chunk_generations",
    "file_moves",
    "code_texts",
    "code_chunks",
    "code_symbols",
    "code_outlines",
    "index_reports",
  ],
});

/** The database of runs. */
export const RUNS_SHAPE = database("runs", {
  tables: [
    table("runs", "run_id", {
      run_id: "text",
      deleted: "bool",
      graph: "text",
      fingerprint: "text",
      project: "text?",
      status: "text",
      note: "text?",
      parent_run_id: "text?",
      parent_sequence: "int8?",
      last_sequence: "int8",
      fence: "int8",
      lease_owner: "text?",
      lease_until: "time?",
      ready_at: "time?",
      claims: "int4",
      claimed_sequence: "int8",
      created_at: "time",
      updated_at: "time",
    }),
    table("graphs", "graph fingerprint", { graph: "text", fingerprint: "text", shape: "text", created_at: "time" }),
    table("checkpoints", "run_id sequence", {
      run_id: "text",
      node_id: "text",
      sequence: "int8",
      timestamp: "time",
      version: "int4",
      next_node: "text?",
      previous_node: "text?",
      attempt: "int4",
      branch: "text",
      step: "int4",
      kind: "text",
      note: "text?",
      size: "int8",
      encoding: "text",
      data: "bytes",
    }),
  ],
  derived: ["schema_migrations", "workers", "events"], // a running worker announces itself again, and streams get a reset
});

/** The threads of LangGraph. */
export const THREADS_SHAPE = database("threads", {
  tables: [
    table("checkpoints", "thread_id checkpoint_ns checkpoint_id", {
      thread_id: "text",
      checkpoint_ns: "text",
      checkpoint_id: "text",
      parent_id: "text?",
      created_at: "time",
      hidden: "bool",
      channels: "texts",
      homes: "names",
      deltas: "texts",
      metadata_type: "text",
      metadata: "bytes",
      type: "text",
      checkpoint: "bytes",
    }),
    table("writes", "thread_id checkpoint_id task_id idx", {
      thread_id: "text",
      checkpoint_ns: "text",
      checkpoint_id: "text",
      task_id: "text",
      idx: "int4",
      channel: "text",
      type: "text",
      value: "bytes",
    }),
  ],
  derived: ["schema_migrations"],
});

/** One system's state. */
export const SYSTEM_SHAPE = database("system", {
  tables: [
    table("metadata", "key", { key: "text", value: "text" }),
    table("components", "component_name", { component_name: "text", version: "int8", updated_at: "time" }),
    {
      ...table("checkpoints", "component_name port_name message_id", {
        id: "int8",
        component_name: "text",
        port_name: "text",
        message_id: "text",
        offset: "int8",
        timestamp: "float8",
        status: "text",
        attempts: "int4",
        reason: "text?",
        data: "bytes?",
      }),
      counter: "id",
    },
    table("ports", "component_name port_name", {
      component_name: "text",
      port_name: "text",
      first_offset: "int8",
      position: "int8",
      highest: "int8",
      pruned_to: "int8",
    }),
    table("offsets_ahead", "component_name port_name offset", { component_name: "text", port_name: "text", offset: "int8" }),
    table("state", "component_name key", { component_name: "text", key: "text", value: "bytes" }),
    {
      ...table("snapshots", "id", {
        sequence: "int8",
        id: "text",
        created_at: "time",
        mode: "text",
        complete: "bool",
        components: "int4",
        messages: "int4",
        state_keys: "int4",
        bytes: "int8",
        checksum: "text?",
      }),
      counter: "sequence",
    },
    table("snapshot_parts", "snapshot_id component_name", {
      snapshot_id: "text",
      component_name: "text",
      checksum: "text",
      data: "bytes",
    }),
  ],
  derived: ["schema_migrations", "write_activity"], // only SQLite measures its write rate
});

/** Converts a row for the readers of records. */
function rawRow(row: NamedValues, columns: Readonly<Record<string, string>>, more: RawRow = {}): RawRow {
  const read = ([name, type]: [string, string]) => {
    const value = row.value(name);
    if (value === null) return [name, null];
    return [name, type === "text" ? row.text(name) : type === "time" ? timeText(value as bigint) : Number(value)];
  };
  return { ...Object.fromEntries(Object.entries(columns).map(read)), ...more };
}

/** Returns a time as records store it, or the number for a time that no record can have. */
function timeText(micros: bigint): string {
  const date = new Date(Number(micros / 1_000n));
  return micros % 1_000n !== 0n || Number.isNaN(date.getTime()) ? String(micros) : date.toISOString();
}

function damageOf(stored: StoredRecord<unknown>): string | undefined {
  return "damaged" in stored ? stored.damaged.reason : undefined;
}

type Described = Readonly<Record<string, ColumnType | `${ColumnType}?`>>;
type Table = Omit<TableShape, "kind">;

function database(kind: DatabaseKind, { tables, derived }: { tables: readonly Table[]; derived: readonly string[] }): DatabaseShape {
  return { kind, tables: tables.map((described) => ({ ...described, kind })), derived };
}

function table(name: string, key: string, described: Described): Table {
  return { name, columns: columns(described), key: key.split(" ") };
}

function columns(described: Described): Column[] {
  return Object.entries(described).map(([name, type]) =>
    type.endsWith("?") ? { name, type: type.slice(0, -1) as ColumnType, nullable: true } : { name, type: type as ColumnType },
  );
}
