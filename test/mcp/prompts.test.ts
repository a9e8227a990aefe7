import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HttpServer, startHttp } from "./connections.ts";

const project_path = "/home/someone/my project";

describe.each(["2025-11-25", "2026-07-28"] as const)("prompts and resources (%s)", (era) => {
  let server: HttpServer;
  let client: Client;
  let saved: { id: string };
  beforeAll(async () => {
    server = await startHttp({ defaultProject: project_path, pageSize: 1 });
    client = await server.connect(era);
    for (const summary of ["Lexer done", "Parser done"]) {
      const args = { summary, description: "Tests are green.", context: { branch: "main" }, tags: ["parser"] };
      saved = (await client.callTool({ name: "checkpoint_save", arguments: args })).structuredContent as { id: string };
    }
  });
  afterAll(() => server?.close());

  const textOf = async (name: string, args: Record<string, string> = {}) => {
    const { messages } = await client.getPrompt({ name, arguments: args });
    expect(messages).toHaveLength(1);
    const [message] = messages;
    if (message?.content.type !== "text") throw new Error("not a text");
    return message.content.text;
  };

  it("lists its prompts page by page", async () => {
    const first = await client.request({ method: "prompts/list", params: {} });
    expect(first.prompts).toMatchObject([{ name: "resume", arguments: [{ name: "project_path", required: false }, { name: "about" }] }]);
    const second = await client.request({ method: "prompts/list", params: { cursor: first.nextCursor! } });
    expect(second.prompts).toMatchObject([{ name: "checkpoint" }]);
    expect(second.nextCursor).toBeUndefined();
    const wrong = client.request({ method: "resources/list", params: { cursor: first.nextCursor! } });
    await expect(wrong).rejects.toMatchObject({ code: -32602 });
  });

  it("puts the latest checkpoints before the model, newest first", async () => {
    const text = await textOf("resume");
    expect(text).toMatch(/Parser done.*Tests are green\..*branch: main.*Lexer done/s);
    expect(text).toContain(saved.id);
    expect(await textOf("resume", { about: "lexer" })).toMatch(/about "lexer".*Lexer done/s);
    expect(await textOf("resume", { project_path: "/nothing/here" })).toMatch(/There is no checkpoint of \/nothing\/here/);
  });

  it("asks the model to save, with what must not be forgotten", async () => {
    expect(await textOf("checkpoint", { note: "The flaky test" })).toMatch(/checkpoint_save.*The flaky test/s);
  });

  it("refuses unknown prompts and arguments, and bad ones, with the reason", async () => {
    await expect(textOf("nonsense")).rejects.toMatchObject({ code: -32602, message: expect.stringContaining("nonsense") });
    await expect(textOf("resume", { projekt: "x" })).rejects.toMatchObject({ code: -32602, message: expect.stringContaining("projekt") });
    const relative = textOf("resume", { project_path: "relative" });
    await expect(relative).rejects.toMatchObject({ code: -32602, message: expect.stringContaining("absolute path") });
  });

  it("offers checkpoints as resources and reads them", async () => {
    const { resources, nextCursor } = await client.request({ method: "resources/list", params: {} });
    expect(nextCursor).toBeDefined();
    expect(resources).toMatchObject([{ name: "Parser done", mimeType: "text/plain" }]);
    const { contents } = await client.readResource({ uri: resources[0]!.uri });
    expect(contents).toEqual([{ uri: resources[0]!.uri, mimeType: "text/plain", text: expect.stringContaining("Tests are green.") }]);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates).toMatchObject([{ uriTemplate: "cairn://checkpoint/{project_path}/{id}" }]);
  });

  it.each([
    "cairn://checkpoint/%2Fhome%2Fsomeone%2Fmy%20project/nowhere",
    "cairn://checkpoint/%2Fhome",
    "cairn://checkpoint/%2Fhome/x/y",
    "cairn://other/a/b",
    "file:///etc/passwd",
    "no address at all",
  ])("does not find %s", async (uri) => {
    await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32602, data: { uri } });
  });

  it.each(["cairn://checkpoint/..%2F..%2Fetc/x", "cairn://checkpoint/%00/x", "cairn://checkpoint/%ff/x"])("refuses %s", async (uri) => {
    await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32602 });
  });
});

it("shows a key nothing of another project, by prompt or by resource", async () => {
  const server = await startHttp({ callers: { "": { access: "read", projects: ["/mine"] } } });
  for (const era of ["2025-11-25", "2026-07-28"] as const) {
    const client = await server.connect(era);
    const { prompts } = await client.listPrompts();
    expect(prompts[0]?.arguments?.[0]).toMatchObject({ name: "project_path", required: true });
    const resume = (path: string) => client.getPrompt({ name: "resume", arguments: { project_path: path } });
    await expect(resume("/mine")).resolves.toBeDefined();
    await expect(resume("/theirs")).rejects.toThrow(/not valid for that project/);
    await expect(client.readResource({ uri: "cairn://checkpoint/%2Ftheirs/x" })).rejects.toThrow(/not valid for that project/);
    await expect(client.getPrompt({ name: "resume" })).rejects.toThrow(/needs the argument project_path/);
    expect((await client.listResources()).resources).toEqual([]);
  }
  await server.close();
});
