import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { settingByKey } from "../../src/config/settings.ts";
import { buildImage, containerOptions, readDockerfile, sentToBuild } from "./dockerfile.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");

const instructions = readDockerfile(read("Dockerfile"));

describe("the Dockerfile", () => {
  mkdirSync(join(root, ".cache"), { recursive: true });
  const scratch = mkdtempSync(join(root, ".cache", "image-"));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  it("builds a tree whose server becomes healthy, takes commands and stops on SIGTERM", async () => {
    const image = buildImage({ context: root, scratch });
    expect(image.user).toBe("node");
    expect(readFileSync(join(scratch, "tools/chown.txt"), "utf8")).toBe(`node:node ${join(image.root, "data")}\n`);
    expect(existsSync(join(image.root, "app/node_modules/typescript")), "development packages are pruned").toBe(false);

    const options = containerOptions(image, { CAIRN_HTTP_PORT: String(await freePort()), CAIRN_EMBEDDER_KIND: "static" });
    const inContainer = ([command, ...args]: readonly string[]) => spawnSync(command!, args, { ...options, encoding: "utf8" });
    const [command, ...args] = [...image.entrypoint, ...image.command];
    expect(inContainer(image.health).status, "health before the server runs").toBe(1);
    const server = spawn(command!, args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
    const log: string[] = [];
    server.stderr.setEncoding("utf8").on("data", (text: string) => log.push(text));
    try {
      await expect.poll(() => inContainer(image.health).status, { interval: 500, message: log.join("") }).toBe(0);
      const created = inContainer(["cairn", "key", "create", "laptop", "--access", "write", "--all-projects", "--json"]);
      expect(created).toMatchObject({ status: 0, stdout: expect.stringContaining("laptop") });
      const { key } = JSON.parse(created.stdout) as { key: string };
      const address = `http://127.0.0.1:${options.env.CAIRN_HTTP_PORT}`;
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const body = JSON.stringify({ project_path: "/srv/app", summary: "It runs." });
      expect((await fetch(`${address}/v1/checkpoint/save`, { method: "POST", headers, body })).ok).toBe(true);
      expect((await fetch(`${address}/v1/checkpoint/save`, { method: "POST", body })).status, "without a key").toBe(401);
    } finally {
      server.kill("SIGTERM");
    }
    expect(await once(server, "exit"), log.join("")).toEqual([0, null]);
  });

  it("uses images with a pinned major version that package.json allows", () => {
    const images = instructions.filter(({ name }) => name === "FROM").map(({ rest }) => rest.split(" ")[0]!);
    const { engines } = JSON.parse(read("package.json")) as { engines: { node: string } };
    for (const image of images) {
      expect(image).toMatch(/^node:\d+-/);
      expect(Number.parseInt(image.slice("node:".length), 10)).toBeGreaterThanOrEqual(Number(/(\d+)/.exec(engines.node)![1]));
    }
  });

  it("writes nothing as root after it has switched to another user", () => {
    const user = instructions.findLastIndex(({ name }) => name === "USER");
    expect(instructions.slice(user).filter(({ name }) => name === "RUN" || name === "COPY")).toEqual([]);
  });

  it("sets only settings that exist, and no secrets", () => {
    const variables = instructions
      .filter(({ name }) => name === "ENV" || name === "ARG")
      .flatMap(({ rest }) => rest.match(/\w+(?==)/g) ?? []);
    expect(variables).toContain("CAIRN_DATA_DIR");
    for (const name of variables.filter((one) => one.startsWith("CAIRN_"))) {
      const setting = [...settingByKey.values()].find(({ envNames }) => envNames.includes(name));
      expect(setting, name).toBeDefined();
      expect(setting!.secret ?? false, name).toBe(false);
    }
    expect(variables.filter((name) => /KEY|TOKEN|PASSWORD|SECRET/.test(name))).toEqual([]);
  });

  it("sends no secrets, tests or build results to the build", () => {
    for (const entry of [".env", ".git", "test", "dist", "node_modules"]) expect(sentToBuild(root)).not.toContain(entry);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return address.port;
}

describe("the compose file", () => {
  const compose = read("compose.yaml");

  it("pins every image, publishes on loopback only and contains no password", () => {
    const images = [...compose.matchAll(/^ +image: (\S+)$/gm)].map(([, image]) => image!);
    expect(images.map((image) => image.split(":")[0])).toEqual(["cairn-memory", "pgvector/pgvector", "qdrant/qdrant"]);
    for (const image of images) expect(image).toMatch(/:v?\d+\.\d+/);
    const published = [...compose.matchAll(/^ +ports: \[(.*)\]$/gm)].flatMap(([, list]) => list!.split(", "));
    expect(published.length).toBeGreaterThan(0);
    for (const port of published) expect(port).toMatch(/^"127\.0\.0\.1:/);
    for (const [, value] of compose.matchAll(/PASSWORD: (\S.*)$/gm)) expect(value).toMatch(/^\$\{POSTGRES_PASSWORD:\?/);
    expect(compose).not.toMatch(/postgres:\/\/\w+:(?!\$\{)/);
  });

  it("sets only settings that exist", () => {
    const names = [...compose.matchAll(/^ +(CAIRN_\w+):/gm)].map(([, name]) => name!);
    expect(names.length).toBeGreaterThan(1);
    for (const name of names)
      expect(
        [...settingByKey.values()].some(({ envNames }) => envNames.includes(name)),
        name,
      ).toBe(true);
  });
});
