import { afterAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { type Caller, invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";

const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
afterAll(() => cairn.close());

const save = operations.find(({ name }) => name === "checkpoint_save")!;
const call = (input: object, caller: Caller = LOCAL_CALLER, defaultProject?: string) =>
  invoke(cairn, save, { summary: "s", ...input }, { caller, defaultProject });

describe("project_id on the wire", () => {
  it("names the project as project_path does", async () => {
    expect(await call({ project_id: "/a" })).toMatchObject({ project_path: "/a" });
    expect(await call({ project_id: "/a", project_path: "/a" })).toMatchObject({ project_path: "/a" });
  });

  it("takes precedence over the default project", async () => {
    expect(await call({ project_id: "/a" }, LOCAL_CALLER, "/default")).toMatchObject({ project_path: "/a" });
    expect(await call({}, LOCAL_CALLER, "/default")).toMatchObject({ project_path: "/default" });
  });

  it("returns invalid_input when project_path names another project", async () => {
    await expect(call({ project_id: "/a", project_path: "/b" })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("project_id"),
    });
  });

  it("is checked against the projects of the caller's key", async () => {
    const caller: Caller = { access: "write", projects: ["/mine"], keyId: "k" };
    await expect(call({ project_id: "/theirs" }, caller)).rejects.toMatchObject({ code: "forbidden" });
    expect(await call({ project_id: "/mine" }, caller)).toMatchObject({ project_path: "/mine" });
  });
});
