export type { ProjectStore, Storage } from "../ports/storage.ts";
export type { SystemStorage, SystemStore } from "../ports/system-store.ts";
export type { ContractCase } from "./contract.ts";
export { type RunStoreContract, runStoreContract } from "./run-store-contract.ts";
export { type StorageContract, storageContract } from "./storage-contract.ts";
export { type SystemStorageContract, systemStorageContract } from "./system-store-contract.ts";
