import type { ErrorCode } from "../../../model/errors.ts";
import type { RepairReport } from "./rebuild.ts";
import type { VectorHit } from "./search.ts";

/** What is asked of the scanning thread. */
export interface ScanRequest {
  readonly path: string;
  readonly collection: string;
  readonly versionId: number;
  readonly listsAbove: number;
  /** `search` ranks, `arrange` sorts the packs into lists now instead of some time later. */
  readonly task:
    | { readonly kind: "search"; readonly vector: Float32Array; readonly limit: number; readonly allow?: Int32Array | undefined }
    | { readonly kind: "arrange" };
}

export interface ScanAnswer {
  readonly hits: readonly VectorHit[];
  /** Damage that was met on the way, and made good unless it says otherwise. */
  readonly repair?: RepairReport;
}

export type ToWorker = { readonly id: number; readonly request: ScanRequest } | { readonly close: string } | { readonly release: true };

export type FromWorker =
  | { readonly id: number; readonly answer: ScanAnswer }
  | {
      readonly id: number;
      readonly error: { readonly code: ErrorCode; readonly message: string; readonly details?: Record<string, unknown> };
    };
