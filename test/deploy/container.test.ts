import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { settingByKey } from "../../src/config/settings.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");

/** The instructions of a Dockerfile, continued lines put together. */
const steps = read("Dockerfile")
  .replace(/^#.*\n/gm, "")
  .replace(/\\\n/g, " ")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line) => ({ op: line.slice(0, line.indexOf(" ")), rest: line.slice(line.indexOf(" ") + 1).trim() }));
const lastStage = steps.slice(steps.findLastIndex(({ op }) => op === "FROM"));

describe("the container", () => {
  it("is built in stages from images with a pinned major version", () => {
    const images = steps.filter(({ op }) => op === "FROM").map(({ rest }) => rest.split(" ")[0]!);
    expect(images.length).toBeGreaterThan(1);
    for (const image of images) expect(image).toMatch(/^node:\d+-/);
    const major = Number(/^node:(\d+)/.exec(images.at(-1)!)![1]);
    const { engines } = JSON.parse(read("package.json")) as { engines: { node: string } };
    expect(major).toBeGreaterThanOrEqual(Number(/(\d+)/.exec(engines.node)![1]));
  });

  it("does not run as root, has a health check and stops on a signal sent to the program itself", () => {
    const user = lastStage.findLast(({ op }) => op === "USER")!;
    expect(user.rest).toBe("node");
    const after = lastStage.slice(lastStage.indexOf(user));
    expect(after.some(({ op }) => op === "RUN" || op === "COPY")).toBe(false);
    expect(lastStage.find(({ op }) => op === "HEALTHCHECK")!.rest).toContain("/health");
    // A list, not a line for a shell: a shell would swallow the signal.
    for (const op of ["ENTRYPOINT", "CMD"]) expect(JSON.parse(lastStage.find((step) => step.op === op)!.rest)).toBeInstanceOf(Array);
  });

  it("sets only what Cairn knows, and no secrets", () => {
    const variables = steps.filter(({ op }) => op === "ENV" || op === "ARG").flatMap(({ rest }) => rest.match(/\w+(?==)/g) ?? []);
    const known = [...settingByKey.values()];
    for (const name of variables.filter((one) => one.startsWith("CAIRN_"))) {
      const setting = known.find(({ envNames }) => envNames.includes(name));
      expect(setting, name).toBeDefined();
      expect(setting!.secret ?? false, name).toBe(false);
    }
    expect(variables).toContain("CAIRN_DATA_DIR");
    expect(variables.filter((name) => /KEY|TOKEN|PASSWORD|SECRET/.test(name))).toEqual([]);
  });

  it("lets into the build only what is listed, and everything that is listed is there", () => {
    const rules = read(".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    expect(rules[0]).toBe("*");
    const taken = rules.slice(1);
    for (const rule of taken) {
      expect(rule.startsWith("!"), rule).toBe(true);
      expect(existsSync(join(root, rule.slice(1))), rule).toBe(true);
    }
    // What the build reads by name.
    const scripts = ["build.mjs", "build-kernel.mjs", "build-models.mjs"].map((file) => read(`scripts/${file}`)).join("\n");
    for (const [, path] of scripts.matchAll(/"((?:tsconfig|src|models|grammars|console)[^"/]*)(?:\/[^"]*)?"/g))
      expect(taken).toContain(`!${path}`);
  });
});

describe("the compose file", () => {
  const compose = read("compose.yaml");

  it("pins every image, publishes on this machine only and has no password in it", () => {
    const images = [...compose.matchAll(/^ +image: (\S+)$/gm)].map(([, image]) => image!);
    expect(images.map((image) => image.split(":")[0])).toEqual(["cairn-memory", "pgvector/pgvector", "qdrant/qdrant"]);
    for (const image of images) expect(image).toMatch(/:v?\d+\.\d+/);
    const published = [...compose.matchAll(/^ +ports: \[(.*)\]$/gm)].flatMap(([, list]) => list!.split(", "));
    expect(published.length).toBeGreaterThan(0);
    for (const port of published) expect(port).toMatch(/^"127\.0\.0\.1:/);
    for (const [, value] of compose.matchAll(/PASSWORD: (\S.*)$/gm)) expect(value).toMatch(/^\$\{POSTGRES_PASSWORD:\?/);
    expect(compose).not.toMatch(/postgres:\/\/\w+:(?!\$\{)/);
  });

  it("sets only what Cairn knows", () => {
    const names = [...compose.matchAll(/^ +(CAIRN_\w+):/gm)].map(([, name]) => name!);
    expect(names.length).toBeGreaterThan(1);
    for (const name of names)
      expect(
        [...settingByKey.values()].some(({ envNames }) => envNames.includes(name)),
        name,
      ).toBe(true);
  });
});
