/** The public entry `cairn-memory/testing`: the contracts that a store must pass, and the in-memory storage to start from. */
export type { CheckpointStore } from "../ports/checkpoint-store.ts";
export type { CodeStore } from "../ports/code-store.ts";
export type { EmbeddingStore } from "../ports/embedding-store.ts";
export type { KnowledgeStore } from "../ports/knowledge-store.ts";
export type { RunStore } from "../ports/run-store.ts";
export type { ProjectStore, Storage } from "../ports/storage.ts";
export type { SystemStorage, SystemStore } from "../ports/system-store.ts";
export { memoryStorage } from "../stores/memory/storage.ts";
export type { ContractCase } from "./contract.ts";
export { type RunStoreContract, runStoreContract } from "./run-store-contract.ts";
export { type StorageContract, storageContract } from "./storage-contract.ts";
export { type SystemStorageContract, systemStorageContract } from "./system-store-contract.ts";
