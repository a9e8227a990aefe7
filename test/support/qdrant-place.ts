import { execFileSync } from "node:child_process";
import { expect } from "vitest";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { type QdrantClient, qdrantClient } from "../../src/vectors/qdrant/client.ts";
import { type QdrantStandIn, qdrantStandIn } from "./qdrant-server.ts";

/** A Qdrant server under test: the stand-in, or the real one of `QDRANT_TEST_URL`. */
export interface QdrantPlace {
  readonly url: string;
  readonly client: QdrantClient;
  readonly standIn: QdrantStandIn | undefined;
  /** Returns the record ids of all points of a project's collection, by tenant. */
  tenants(projectPath: string, collection?: string): Promise<Map<string, string[]>>;
  /** Kills the server and starts it again. `between` runs while it is down, where the test controls that. */
  restart(between: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export const API_KEY = "secret";

export const qdrantPlaces = ["the stand-in", ...(process.env.QDRANT_TEST_URL ? ["a real server"] : [])] as const;

export async function openQdrantPlace(name: string): Promise<QdrantPlace> {
  const standIn = name === "the stand-in" ? await qdrantStandIn(API_KEY) : undefined;
  const url = standIn?.url ?? process.env.QDRANT_TEST_URL!;
  const client = qdrantClient({ url, apiKey: API_KEY, timeoutMs: 60_000 });
  return {
    url,
    client,
    standIn,
    async tenants(projectPath, collection = "checkpoints") {
      const grouped = new Map<string, string[]>();
      for (const { tenant, id } of standIn ? pointsIn(standIn) : await pointsOn(url, client))
        if (tenant.startsWith(`${projectDatabaseName(projectPath)}_`) && tenant.includes(`_${collection}_v`))
          grouped.set(tenant, [...(grouped.get(tenant) ?? []), id].sort());
      return grouped;
    },
    async restart(between) {
      const command = process.env.QDRANT_TEST_RESTART;
      if (standIn) await standIn.kill();
      else if (command !== undefined) execFileSync("sh", ["-c", command], { stdio: "ignore" });
      await between();
      await standIn?.start();
    },
    async close() {
      if (standIn) {
        expect(standIn.violations).toEqual([]);
        return standIn.close();
      }
      for (const collection of await client.collections())
        if (collection.startsWith("cairn_test-")) await client.deleteCollection(collection);
    },
  };
}

type TenantPayload = { readonly tenant: string; readonly id: string };

function pointsIn({ collections }: QdrantStandIn): TenantPayload[] {
  return [...collections.values()].flatMap(({ points }) => [...points.values()].map(({ payload }) => payload)).filter(isOfTenant);
}

async function pointsOn(url: string, client: QdrantClient): Promise<TenantPayload[]> {
  const found: TenantPayload[] = [];
  for (const collection of await client.collections()) {
    const answer = await fetch(`${url}/collections/${collection}/points/scroll`, {
      method: "POST",
      headers: { "content-type": "application/json", "api-key": API_KEY },
      body: JSON.stringify({ limit: 100_000, with_payload: true }),
    });
    const { result } = (await answer.json()) as { result?: { points: { payload: Record<string, unknown> }[] } };
    found.push(...(result?.points ?? []).map(({ payload }) => payload).filter(isOfTenant));
  }
  return found;
}

/** The marker of a tenant has another payload. */
const isOfTenant = (payload: Record<string, unknown>): payload is TenantPayload => "tenant" in payload && "id" in payload;
