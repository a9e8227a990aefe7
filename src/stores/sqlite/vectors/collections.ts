import { CairnError } from "../../../model/errors.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { MAX_DIMENSION } from "./codes.ts";

/** The vectors of one collection of records under one embedding version. */
export interface VectorCollection {
  readonly id: number;
  readonly dimension: number;
  /** Increases with every transaction that changes the collection. */
  readonly change: number;
  /** Increases with every transaction that changes its segments. */
  readonly layout: number;
  /** Consecutive IVF lists without a better hit after which a search stops. */
  readonly probes: number;
}

export function findCollection(tx: SqliteTx, name: string, versionId: number): VectorCollection | undefined {
  return tx.get<VectorCollection>(`SELECT ${COLUMNS} FROM vector_collections WHERE collection = ? AND version_id = ?`, name, versionId);
}

export function readCollection(tx: SqliteTx, id: number): VectorCollection | undefined {
  return tx.get<VectorCollection>(`SELECT ${COLUMNS} FROM vector_collections WHERE id = ?`, id);
}

const COLUMNS = "id, dimension, change, layout, probes";

/** Returns the collection for vectors of this dimension and creates it if necessary. */
export function openCollection(tx: SqliteTx, name: string, versionId: number, dimension: number): VectorCollection {
  const found = findCollection(tx, name, versionId);
  if (found) {
    assertDimension(found, dimension);
    return found;
  }
  if (dimension < 1 || dimension > MAX_DIMENSION)
    throw new CairnError("invalid_input", `A vector has 1 to ${MAX_DIMENSION} components, not ${dimension}.`);
  const { lastId } = tx.run(
    "INSERT INTO vector_collections (collection, version_id, dimension) VALUES (?, ?, ?)",
    name,
    versionId,
    dimension,
  );
  return readCollection(tx, lastId)!;
}

export function assertDimension(collection: VectorCollection, dimension: number): void {
  if (dimension !== collection.dimension)
    throw new CairnError(
      "invalid_input",
      `This embedding version has vectors of ${collection.dimension} components, not ${dimension}. Another model needs another version.`,
      { details: { expected: collection.dimension, got: dimension } },
    );
}
