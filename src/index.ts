export type { Cairn } from "./cairn.ts";
export type { CheckpointList, Checkpoints, ListCheckpoints, SaveCheckpoint } from "./checkpoints/service.ts";
export type { Checkpoint, CheckpointSort } from "./model/checkpoint.ts";
export { CairnError, type ErrorCode } from "./model/errors.ts";
export { type OpenOptions, open } from "./open.ts";
export type { EmbedderChoice } from "./open-embedders.ts";
export type { Embedder, EmbedOptions } from "./ports/embedder.ts";
