import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { operations } from "../../src/operations/list.ts";
import { type AttackCaller, type Callers, createCallers, forbiddenTo, localTokenCaller } from "../attack/callers.ts";
import { type Canary, canaryFinder, namedBy } from "../attack/canaries.ts";
import { type AttackRequest, send, sendAll } from "../attack/client.ts";
import { type Attack, combine, mcpRequest, requestOf, sample } from "../attack/corpus.ts";
import { digests } from "../attack/digest.ts";
import { callAs, findLiveTargets } from "../attack/live.ts";
import { type AttackedServer, startServer } from "../attack/server.ts";
import { type LiveTargets, targetInput } from "../attack/targets.ts";
import { allTricks, type Trick } from "../attack/tricks.ts";
import { plantWorld, type World } from "../attack/world.ts";

/** `npm run test:attack` sends the whole corpus; `npm test` a sample in which every operation, caller, trick and protocol occurs. */
const LONG = process.env.CAIRN_TEST_ATTACK === "1";
const SHORT_REQUESTS = 3_000;
const IN_FLIGHT = 16;

let world: World;
let callers: Callers;
let server: AttackedServer;
let live: LiveTargets;
let tricks: readonly Trick[];
let canaries: readonly Canary[];

beforeAll(async () => {
  world = await plantWorld();
  callers = await createCallers(world);
  server = await startServer(world.folders);
  live = await findLiveTargets(server.port, callers.harness, world);
  const local = localTokenCaller(world);
  if (local) callers = { ...callers, all: [...callers.all, local] };
  canaries = [
    ...world.canaries,
    ...callers.canaries,
    { kind: "job id", text: live.job, audience: "all-projects" },
    ...(local ? [{ kind: "local token", text: local.headers.authorization!.slice("Bearer ".length), audience: "nobody" as const }] : []),
  ];
  const cursors = live.cursors.map(
    (cursor, index): Trick => ({
      name: `cursor ${index} of the other project`,
      input: (input, field) => ({ ...input, [field]: world.own, cursor }),
    }),
  );
  tricks = [...allTricks(world), ...cursors];
});
afterAll(async () => {
  await server?.stop();
  await world?.remove();
});

interface Finding {
  readonly attack: string;
  readonly problem: string;
}

/** Sends a request as a caller and reports a canary it may not see, and an answer that says the server failed. */
async function findProblems(name: string, caller: AttackCaller, request: AttackRequest): Promise<Finding[]> {
  const answer = await send(server.port, request);
  const find = canaryFinder(forbiddenTo(caller, canaries));
  const named = namedBy(JSON.stringify([request.path, request.headers, String(request.body ?? ""), request.raw?.toString("latin1")]), find);
  const leaked = find(answer.bytes).filter((canary) => !named.has(canary));
  return [
    ...leaked.map(({ kind }) => ({ attack: name, problem: `leaks the ${kind}: ${answer.status} ${answer.body.slice(0, 500)}` })),
    ...(answer.status >= 500 && answer.status !== 503
      ? [{ attack: name, problem: `answers ${answer.status}: ${answer.body.slice(0, 500)}` }]
      : []),
    ...(caller.scope === "nothing" && answer.status >= 200 && answer.status < 300 && request.method !== "OPTIONS" && !isPublic(request.path)
      ? [{ attack: name, problem: `lets the caller in: ${answer.status} ${answer.body.slice(0, 200)}` }]
      : []),
  ];
}

/** The description of the API and the state of the server are for everybody. */
function isPublic(path: string): boolean {
  return /^(\/|\/docs|\/openapi\.json|\/health(\/\w+)?)$/.test(path);
}

async function run(attacks: readonly Attack[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  const inputs = new Map(operations.map((operation) => [operation.name, targetInput(operation, world, live)]));
  await sendAll(attacks, IN_FLIGHT, async (attack) => {
    findings.push(...(await findProblems(attack.name, attack.caller, requestOf(attack, inputs.get(attack.operation.name)!))));
  });
  return findings;
}

/** Everything stored except what belongs to the own project, which its keys may change. */
function othersDigests(): Promise<Record<string, string>> {
  return digests(world.folders, projectDatabaseName(world.own));
}

describe("the attack corpus", () => {
  it("plants data that a caller with the rights does see", async () => {
    const find = canaryFinder(canaries);
    const seen = new Set<Canary>();
    const readAll = callers.all.find(({ name }) => name === "read, all projects")!;
    for (const attack of combine(operations, [readAll], [{ name: "none" }]).filter(({ operation }) => operation.access === "read"))
      for (const canary of find((await send(server.port, requestOf(attack, targetInput(attack.operation, world, live)))).bytes))
        seen.add(canary);
    const hidden = canaries.filter((canary) => canary.audience === "all-projects" && !seen.has(canary)).map(({ kind }) => kind);
    // The project's own configuration file stays on disk, and dead letters are shown without their data unless asked for.
    expect(hidden).toEqual(expect.arrayContaining(["configuration"]));
    expect(seen.size).toBeGreaterThanOrEqual(18);
  });

  it(
    "leaks nothing of another project and changes nothing in it, whatever key, path and protocol is tried",
    async () => {
      const limited = callers.all.filter(({ scope, access }) => scope !== "all projects" || access === "read");
      const all = combine(operations, limited, tricks);
      const attacks = LONG ? all : sample(all, SHORT_REQUESTS);
      for (const operation of operations)
        expect(
          attacks.some((attack) => attack.operation === operation),
          operation.name,
        ).toBe(true);
      for (const trick of tricks)
        expect(
          attacks.some((attack) => attack.trick === trick),
          trick.name,
        ).toBe(true);
      for (const caller of limited)
        expect(
          attacks.some((attack) => attack.caller === caller),
          caller.name,
        ).toBe(true);
      const before = await othersDigests();
      const findings = await run(attacks);
      console.log(`${attacks.length} of ${all.length} attacks, ${findings.length} findings`);
      expect(findings.slice(0, 20)).toEqual([]);
      expect(attacks.length).toBeGreaterThanOrEqual(2_000);
      expect(await othersDigests()).toEqual(before);
    },
    LONG ? 7_200_000 : undefined,
  );

  it("leaks nothing through prompts, resources, sessions and pages", async () => {
    const limited = callers.all.filter(({ scope }) => scope !== "all projects");
    const project = JSON.stringify(world.other);
    const uri = JSON.stringify(`cairn://checkpoint/${encodeURIComponent(world.other)}/${world.ids.checkpoint}`);
    const session = await openSession(callers.harness);
    const findings: Finding[] = [];
    for (const caller of limited) {
      const requests: AttackRequest[] = [
        mcpRequest(caller.headers, "prompts/get", `{"name":"resume","arguments":{"project_path":${project}}}`),
        mcpRequest(caller.headers, "prompts/get", `{"name":"resume","arguments":{"project_path":${project},"about":"harbour"}}`),
        mcpRequest(caller.headers, "resources/read", `{"uri":${uri}}`),
        mcpRequest(caller.headers, "resources/list", "{}"),
        mcpRequest({ ...caller.headers, "mcp-session-id": session }, "tools/call", `{"name":"system_list","arguments":{}}`),
        { method: "GET", path: "/mcp", headers: { ...caller.headers, accept: "text/event-stream", "mcp-session-id": session } },
        { method: "DELETE", path: "/mcp", headers: { ...caller.headers, "mcp-session-id": session } },
        ...["/metrics", "/health", "/health/ready", "/openapi.json", "/docs", "/", "/keys.json", "/token", "/.cairn/keys.json"].map(
          (path) => ({
            method: "GET",
            path,
            headers: { ...caller.headers },
          }),
        ),
      ];
      for (const request of requests)
        findings.push(...(await findProblems(`${request.method} ${request.path} ${request.body ?? ""} | ${caller.name}`, caller, request)));
    }
    expect(findings).toEqual([]);
    // The session is still there for the key that opened it.
    const own = await send(server.port, mcpRequest({ ...callers.harness.headers, "mcp-session-id": session }, "tools/list", "{}"));
    expect(own.status).toBe(200);
  });

  it("gives the same answer for a record of another project and for one that does not exist", async () => {
    const limited = callers.all.filter(({ scope }) => scope === "own project");
    const absent = {
      ...world,
      other: `${world.other}-absent`,
      ids: { checkpoint: "absent", knowledge: "absent", run: "absent", system: "absent" },
    };
    const differences: Finding[] = [];
    for (const attack of combine(operations, limited, [{ name: "none" }])) {
      const answers = [];
      for (const target of [
        targetInput(attack.operation, world, live),
        targetInput(attack.operation, absent, { ...live, job: "absent", key: "absent" }),
      ]) {
        const { status, body } = await send(server.port, requestOf(attack, target));
        answers.push(`${status} ${withoutNames(body, target)}`);
      }
      if (answers[0] !== answers[1]) differences.push({ attack: attack.name, problem: answers.join("\n") });
    }
    expect(differences).toEqual([]);
  });

  it("returns no secret of a key to any caller, and lets only an administrator create one", async () => {
    const powerful = callers.all.filter(({ scope, access }) => scope === "all projects" && access !== "read");
    const keyIds = async () => (await callAs(server.port, callers.harness, "GET", "/v1/key/list")).keys.map(({ id }: { id: string }) => id);
    const before = await keyIds();
    const writers = powerful.filter(({ access }) => access === "write");
    expect(await run(combine(operations, writers, [{ name: "none" }]))).toEqual([]);
    expect(await keyIds()).toEqual(before);
    // Last, since an administrator may change everything.
    expect(
      await run(
        combine(
          operations,
          powerful.filter(({ access }) => access === "admin"),
          [{ name: "none" }],
        ),
      ),
    ).toEqual([]);
    expect((await keyIds()).length).toBeGreaterThan(before.length - 2);
    expect(server.isRunning()).toBe(true);
  });
});

/** Opens an MCP session and returns its id. */
async function openSession(caller: AttackCaller): Promise<string> {
  const params = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"attack","version":"1"}}`;
  const { headers } = await send(server.port, mcpRequest(caller.headers, "initialize", params));
  return headers["mcp-session-id"]!;
}

/** An answer without the names that its request contained and without what differs from call to call. */
function withoutNames(body: string, target: Record<string, unknown>): string {
  const names = Object.values(target).filter((value): value is string => typeof value === "string");
  const bare = names.reduce((text, name) => text.replaceAll(JSON.stringify(name).slice(1, -1), "…"), body);
  return bare.replaceAll(/"request_id":"[^"]*"/g, "").replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "");
}
