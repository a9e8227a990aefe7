import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { type Caller, invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { type System, system } from "../../src/systems.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-system-surfaces-"));
let cairn: Cairn;
let billing: System;
beforeAll(async () => {
  cairn = await open({ dataDir: folder, stateDir: join(folder, "state"), embedder: [] });
  billing = system({ systemId: "billing", storage: cairn.systems.storage, maxAttempts: 1, snapshots: { everyMs: 0 } });
  const orders = billing.component("till").port<number>("orders");
  for (const offset of [0, 1, 2, 4])
    await orders.receive({ id: `m${offset}`, offset, data: offset }, (state, { data }) => {
      if (data > 1) throw new Error(`no \u001b[31mpaper for ${data}`);
      state.set("last", data);
    });
});
afterAll(async () => {
  await billing.close();
  await cairn.close();
  rmSync(folder, { recursive: true, force: true });
});

const named = (name: string) => operations.find((operation) => operation.name === name)!;
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers, and fail where a part is missing
const call = (name: string, input: object = { system_id: "billing" }, caller: Caller = LOCAL_CALLER): Promise<any> =>
  invoke(cairn, named(name), input, { caller, edge: "cli" });

describe("systems on every surface", () => {
  it("are listed and shown in figures", async () => {
    const { systems } = await call("system_list", {});
    expect(systems).toEqual([
      { system_id: "billing", location: join(folder, "state", "checkpoints", "billing.db"), size_bytes: expect.any(Number) },
    ]);
    const shown = await call("system_get");
    expect(shown.components).toMatchObject([
      { component: "till", state_keys: 1, ports: [{ port: "orders", position: 2, highest: 4, ahead: 1, done: 2, dead: 2 }] },
    ]);
    expect(named("system_get").render(shown)).toContain("orders: position 2 (3 is missing, received up to 4), 2 done, 0 pending, 2 dead");
    await expect(call("system_get", { system_id: "absent" })).rejects.toMatchObject({ code: "not_found" });
    for (const system_id of ["../x", "", "a b", "x".repeat(101)])
      await expect(call("system_get", { system_id })).rejects.toMatchObject({ code: "invalid_input" });
    expect((await call("system_list", {})).systems).toHaveLength(1); // asking for one does not make it
  });

  it("list dead letters in pages, and try them again", async () => {
    const first = await call("system_dead_letters", { system_id: "billing", limit: 1, include_data: true });
    expect(first.dead_letters).toMatchObject([{ component: "till", port: "orders", id: "m2", attempts: 1, data_json: "2" }]);
    const second = await call("system_dead_letters", { system_id: "billing", limit: 1, cursor: first.next_cursor });
    expect(second.dead_letters).toMatchObject([{ id: "m4", reason: expect.stringContaining("paper") }]);
    expect([second.dead_letters[0].data_json, second.next_cursor]).toEqual([undefined, undefined]);
    await expect(call("system_dead_letters", { system_id: "billing", cursor: "nonsense" })).rejects.toMatchObject({
      code: "invalid_input",
    });
    const port = { system_id: "billing", component: "till", port: "orders" };
    expect(await call("system_requeue", { ...port, ids: ["m4", "m0"] })).toEqual({ requeued: 1 });
    expect(await call("system_requeue", port)).toEqual({ requeued: 1 });
    // The process that runs the system notices, although it was changed from outside.
    expect(
      await billing
        .component("till")
        .port("orders")
        .work(() => {}),
    ).toEqual({ done: 2, failed: 0, dead: 0 });
  });

  it("take, list, verify and restore snapshots", async () => {
    const taken = await call("system_snapshot");
    expect(taken).toMatchObject({ mode: "consistent", complete: true, components: 1, state_keys: 1 });
    await call("system_snapshot", { system_id: "billing", mode: "per_component" });
    expect((await call("system_snapshots")).snapshots).toHaveLength(2);
    const { id } = await call("system_snapshot", { system_id: "billing", keep: 1 });
    expect((await call("system_snapshots")).snapshots).toMatchObject([{ id }]);
    expect((await call("system_verify", { system_id: "billing", level: "full" })).snapshots).toEqual([
      { snapshot_id: id, created_at: expect.any(String), level: "full", good: true, problems: [] },
    ]);
    await billing
      .component("till")
      .port("orders")
      .receive({ id: "m3", offset: 3 }, (state) => state.set("last", 99));
    const restored = await call("system_restore");
    expect(restored).toMatchObject({ snapshot_id: id, skipped: [], ports: [{ component: "till", port: "orders", position: 2 }] });
    expect(named("system_restore").render(restored)).toContain("everything after offset 2");
    expect(await billing.component("till").get("last")).toBe(1);
  });

  it("forget finished messages", async () => {
    await expect(call("system_prune")).rejects.toMatchObject({ code: "invalid_input" });
    expect((await call("system_prune", { system_id: "billing", older_than: "1d" })).messages).toBe(0);
    expect((await call("system_prune", { system_id: "billing", keep_last: 0 })).messages).toBe(3);
    expect((await call("system_get")).components[0].ports[0]).toMatchObject({ pruned_to: 2, done: 1 });
  });

  it("are changed with an admin key only, and hidden from keys that are limited to projects", async () => {
    const reader: Caller = { access: "read", projects: "all" };
    const writer: Caller = { access: "write", projects: "all" };
    const limited: Caller = { access: "admin", projects: ["/mine"] };
    const port = { system_id: "billing", component: "till", port: "orders" };
    const inputs: Record<string, object> = { system_list: {}, system_requeue: port, system_prune: { system_id: "billing", keep_last: 0 } };
    for (const operation of operations.filter(({ name }) => name.startsWith("system_"))) {
      const input = inputs[operation.name] ?? { system_id: "billing" };
      const changes = !operation.annotations.readOnly;
      expect([operation.name, operation.access, operation.toolset]).toEqual([operation.name, changes ? "admin" : "read", "systems"]);
      await expect(call(operation.name, input, limited)).rejects.toMatchObject({ code: "forbidden" });
      if (changes) await expect(call(operation.name, input, writer)).rejects.toMatchObject({ code: "forbidden" });
      else expect(await call(operation.name, input, reader)).toBeDefined();
    }
  });
});
