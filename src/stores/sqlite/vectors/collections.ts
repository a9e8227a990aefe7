import { CairnError } from "../../../model/errors.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { MAX_DIMENSION } from "./codes.ts";

/** One collection under one embedding version. */
export interface Space {
  readonly id: number;
  readonly dimension: number;
  /** Grows with every transaction that changes the space. */
  readonly change: number;
  /** Grows with every transaction that changes its packs. */
  readonly layout: number;
  /** A search through lists ends after so many lists in a row without a better answer. */
  readonly patience: number;
}

export function findSpace(tx: SqliteTx, collection: string, versionId: number): Space | undefined {
  return tx.get<Space>(`SELECT ${COLUMNS} FROM vector_spaces WHERE collection = ? AND version_id = ?`, collection, versionId);
}

export function readSpace(tx: SqliteTx, id: number): Space | undefined {
  return tx.get<Space>(`SELECT ${COLUMNS} FROM vector_spaces WHERE id = ?`, id);
}

const COLUMNS = "id, dimension, change, layout, patience";

/** The space for vectors of this dimension, made if it is not there. */
export function openSpace(tx: SqliteTx, collection: string, versionId: number, dimension: number): Space {
  const found = findSpace(tx, collection, versionId);
  if (found) {
    assertDimension(found, dimension);
    return found;
  }
  if (dimension < 1 || dimension > MAX_DIMENSION)
    throw new CairnError("invalid_input", `A vector has 1 to ${MAX_DIMENSION} components, not ${dimension}.`);
  const { lastId } = tx.run(
    "INSERT INTO vector_spaces (collection, version_id, dimension) VALUES (?, ?, ?)",
    collection,
    versionId,
    dimension,
  );
  return readSpace(tx, lastId)!;
}

export function assertDimension(space: Space, dimension: number): void {
  if (dimension !== space.dimension)
    throw new CairnError(
      "invalid_input",
      `This embedding version holds vectors of ${space.dimension} components, not ${dimension}. Another model needs another version.`,
      { details: { expected: space.dimension, got: dimension } },
    );
}
