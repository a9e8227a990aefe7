/** The public entry `cairn-memory/runs`: graphs of steps that survive their process. */
export { CairnError } from "./model/errors.ts";
export type { GraphShape, ShapeEdge, ShapeNode } from "./model/graph-shape.ts";
export type {
  CheckpointKind,
  NewRunCheckpoint,
  Run,
  RunCheckpoint,
  RunCheckpointInfo,
  RunLease,
  RunQuery,
  RunStatus,
  StoredState,
} from "./model/run.ts";
export {
  CheckpointNotFoundError,
  type CheckpointStore,
  FileStore,
  MemoryStore,
  PostgresStore,
  SQLiteStore,
} from "./open/checkpoint-store.ts";
export { openRunStore, type RunStoreOptions } from "./open/open-run-store.ts";
export type { ClaimedRun, GraphCatalog, NewWorker, QueuedRun, RunQueue, RunWorker, WorkerRegistry } from "./ports/run-queue.ts";
export type { HistoryQuery, NewRun, PruneOptions, PruneReport, RunStore, SaveOptions } from "./ports/run-store.ts";
export type { CompiledGraph } from "./runs/compiled.ts";
export {
  END,
  type ForkOptions,
  type NodeOptions,
  type RetryRule,
  type Router,
  START,
  type Step,
  type StepContext,
  type SubgraphOptions,
} from "./runs/definition.ts";
export type { Interrupt, RunEvent } from "./runs/events.ts";
export type { GraphFault } from "./runs/faults.ts";
export { type GraphBuilder, type GraphOptions, graph } from "./runs/graph.ts";
export type { EnqueueOptions, ResumeFromOptions, ResumeOptions, RunOptions, RunResult, StepSpan } from "./runs/options.ts";
export type { RecoverOptions, Recovery } from "./runs/recover.ts";
export { RunError, type RunErrorKind } from "./runs/run-error.ts";
export { type Worker, worker } from "./runs/worker.ts";
export type { WorkerEvent, WorkerGraph, WorkerInbox, WorkerOptions } from "./runs/worker-options.ts";
export { memoryRunStore } from "./stores/memory/runs.ts";
export { decodeState, encodeText as encodeState } from "./text/plain-data.ts";
