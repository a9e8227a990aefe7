import type { Operation } from "../../src/operations/operation.ts";

export const probeOperations: readonly Operation[];
