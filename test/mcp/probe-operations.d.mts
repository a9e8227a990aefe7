import type { Operation } from "../../src/operation.ts";

export const probeOperations: readonly Operation[];
