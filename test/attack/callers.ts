import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Access } from "../../src/model/api-key.ts";
import { open } from "../../src/open/open.ts";
import type { Audience, Canary } from "./canaries.ts";
import type { World } from "./world.ts";

export interface AttackCaller {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly access: Access | "none";
  readonly scope: "nothing" | "own project" | "all projects";
}

export interface Callers {
  readonly all: readonly AttackCaller[];
  /** An administrator of all projects, for the harness itself. */
  readonly harness: AttackCaller;
  /** Secrets and labels of the keys, to be looked for in answers. */
  readonly canaries: readonly Canary[];
}

const LEVELS: readonly Access[] = ["read", "write", "admin"];

/** Creates one key of every kind in the data folder, before the server starts. */
export async function createCallers({ folders, own, other }: World): Promise<Callers> {
  const { dataDir, stateDir } = folders;
  const canaries: Canary[] = [];
  const openWith = (now?: () => string) => open({ dataDir, stateDir, embedder: { kind: "none" }, ...(now && { now }) });
  const past = await openWith(() => "2020-01-01T00:00:00.000Z");
  const expired = await past.keys.create({ label: "expired", access: "admin", projects: "all", expiresAt: "2020-01-02T00:00:00.000Z" });
  await past.close();

  const cairn = await openWith();
  const create = async (label: string, access: Access, projects: "all" | readonly string[]) => {
    const { key, id } = await cairn.keys.create({ label, access, projects });
    const secret = key.split("_").slice(2).join("_");
    const watched = (kind: string, text: string, audience: Audience) => canaries.push({ kind: `${kind} of ${label}`, text, audience });
    watched("key secret", secret, "nobody");
    watched("key id", id, "administrators");
    return { key, id };
  };
  const revoked = await create("revoked", "admin", "all");
  await cairn.keys.revoke(revoked.id);
  const harness = caller("harness", (await create("harness", "admin", "all")).key, "admin", "all projects");
  const callers: AttackCaller[] = [
    { name: "no key", headers: {}, access: "none", scope: "nothing" },
    caller("garbage", "garbage", "none", "nothing"),
    caller("right id, wrong secret", `cairn_${revoked.id}_${"A".repeat(43)}`, "none", "nothing"),
    caller("revoked", revoked.key, "none", "nothing"),
    caller("expired", expired.key, "none", "nothing"),
  ];
  for (const access of LEVELS) {
    callers.push(caller(`${access}, own project`, (await create(`${access} own`, access, [own])).key, access, "own project"));
    callers.push(caller(`${access}, all projects`, (await create(`${access} all`, access, "all")).key, access, "all projects"));
  }
  const label = "zqkeylabelofother";
  await cairn.keys.create({ label, access: "read", projects: [other] });
  canaries.push({ kind: "key label", text: label, audience: "administrators" });
  await cairn.close();
  return { all: callers, harness, canaries };
}

/** The token of the user at this machine, which the server writes into its data folder when it starts. */
export function localTokenCaller({ folders }: World): AttackCaller | undefined {
  const path = join(folders.dataDir, "token");
  return existsSync(path) ? caller("local token", readFileSync(path, "utf8").trim(), "admin", "all projects") : undefined;
}

/** Lists what this caller must never receive. */
export function forbiddenTo({ access, scope }: AttackCaller, canaries: readonly Canary[]): Canary[] {
  const maySee: Audience[] = [];
  if (scope === "all projects") maySee.push("all-projects", "operators");
  if (access === "admin") maySee.push("operators"); // backups and checks name the files of the project's own database
  if (scope === "all projects" && access === "admin") maySee.push("administrators");
  return canaries.filter(({ audience }) => !maySee.includes(audience));
}

function caller(name: string, key: string, access: AttackCaller["access"], scope: AttackCaller["scope"]): AttackCaller {
  return { name, headers: { authorization: `Bearer ${key}` }, access, scope };
}
