import { createHash } from "node:crypto";
import { projectDatabaseName } from "../../model/ids.ts";
import type { VectorSpace } from "../../ports/embedding-store.ts";

/** Prefix of the collections that belong to Cairn. */
export const COLLECTION_PREFIX = "cairn_";

/** Returns the name of the Qdrant collection of an embedding model. All projects share it, so that thousands of them need one index. */
export function collectionName({ model, version, dimension }: VectorSpace): string {
  const slug = model
    .toLowerCase()
    .replace(/[^a-z0-9.]/g, "-")
    .slice(-40);
  return `${COLLECTION_PREFIX}${slug}_${hash(JSON.stringify([model, version, dimension])).toString("hex", 0, 8)}`;
}

/** Returns the first part of the tenant names of one collection of a project. `databaseId` differs between databases of the same name. */
export const tenantBase = (projectPath: string, databaseId: string, collection: string): string =>
  `${projectDatabaseName(projectPath)}_${databaseId}_${collection}`;

/** Returns the tenant of one embedding version. Its points are never mixed with those of another project, collection or version. */
export const tenantName = (base: string, versionId: number): string => `${base}_v${versionId}`;

/** The key of the marker of a tenant, above every key of a vector. */
const MARKER_KEY = 0xffff_ffff_ffff_ffffn;

/**
 * Returns the point id of a vector: 64 bits for the tenant, then the key. Points of a tenant are therefore in the order of their keys,
 * and those of two tenants never share an id.
 */
export const pointId = (tenant: string, key: number | bigint): string => {
  const bytes = hash(tenant).subarray(0, 16);
  bytes.writeBigUInt64BE(BigInt(key), 8);
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
};

/** Returns the id of the point that says that a tenant was copied completely. */
export const markerId = (tenant: string): string => pointId(tenant, MARKER_KEY);

export const keyOf = (id: string): number => Number(BigInt(`0x${id.replaceAll("-", "").slice(16)}`));

const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
