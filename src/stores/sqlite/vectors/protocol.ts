import type { ErrorCode } from "../../../model/errors.ts";
import type { RepairReport } from "./rebuild.ts";
import type { VectorHit } from "./search.ts";

/** A request to the scan thread. */
export interface ScanRequest {
  readonly path: string;
  readonly collection: string;
  readonly versionId: number;
  readonly listsAbove: number;
  /** `search` ranks vectors; `buildLists` builds the IVF lists now instead of in the background. */
  readonly task:
    | { readonly kind: "search"; readonly vector: Float32Array; readonly limit: number; readonly allow?: Int32Array | undefined }
    | { readonly kind: "buildLists" };
}

export interface ScanAnswer {
  readonly hits: readonly VectorHit[];
  /** Damage found by the request, repaired unless it says otherwise. */
  readonly repair?: RepairReport;
}

export type ToWorker = { readonly id: number; readonly request: ScanRequest } | { readonly close: string } | { readonly release: true };

export type FromWorker =
  | { readonly id: number; readonly answer: ScanAnswer }
  | {
      readonly id: number;
      readonly error: { readonly code: ErrorCode; readonly message: string; readonly details?: Record<string, unknown> };
    };
