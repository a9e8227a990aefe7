import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type LoadOptions, loadConfig } from "../../src/config/load.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { showConfig } from "../../src/config/show.ts";
import { DEFAULT_PORT } from "../../src/http/serve.ts";
import { DEFAULT_TOOLSETS } from "../../src/mcp/server.ts";
import { CairnError } from "../../src/model/errors.ts";
import { operations } from "../../src/operations/list.ts";
import { DEFAULT_RATE_LIMIT } from "../../src/scheduling/rate-limit.ts";

let folder: string;
let home: string;
let project: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cairn-config-"));
  home = join(folder, "home");
  project = join(folder, "project");
  mkdirSync(join(home, ".cairn"), { recursive: true });
  mkdirSync(project);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const load = (options: LoadOptions = {}) => loadConfig({ env: {}, home, cwd: project, projectDir: project, ...options });
const userFile = (content: unknown) => writeFileSync(join(home, ".cairn", "config.json"), text(content));
const projectFile = (content: unknown) => writeFileSync(join(project, "cairn.config.json"), text(content));
const text = (content: unknown) => (typeof content === "string" ? content : JSON.stringify(content));
const refusal = (options: LoadOptions = {}): string => {
  try {
    load(options);
  } catch (error) {
    expect(error).toBeInstanceOf(CairnError);
    expect((error as CairnError).code).toBe("invalid_input");
    return (error as CairnError).message;
  }
  throw new Error("The configuration was accepted.");
};

describe("what holds", () => {
  it("has a default for everything a newcomer needs", () => {
    const { config } = load();
    expect(config.dataDir).toBe(join(home, ".cairn"));
    expect(config.storage).toBe("sqlite");
    expect(config.http).toMatchObject({ host: "127.0.0.1", port: 7483, trustedProxies: [] });
    expect(config.mcp.toolsets).toEqual(["core"]);
    expect(config.embedder.kind).toBe("auto");
  });

  it("prefers flags to environment to user file to defaults", () => {
    const port = (options: LoadOptions = {}) => load(options).config.http.port;
    expect(port()).toBe(7483);
    userFile({ http: { port: 1001 } });
    expect(port()).toBe(1001);
    expect(port({ env: { CAIRN_HTTP_PORT: "1003" } })).toBe(1003);
    expect(port({ env: { CAIRN_HTTP_PORT: "1003" }, flags: [["http.port", "1004", "--port"]] })).toBe(1004);
  });

  it("prefers the project file to the user file, and the environment to both", () => {
    const files = (options: LoadOptions = {}) => load(options).config.code.batchFiles;
    userFile({ code: { batch_files: 3 } });
    projectFile({ code: { batch_files: 4 } });
    expect(files()).toBe(4);
    expect(files({ env: { CAIRN_CODE_BATCH_FILES: "5" } })).toBe(5);
  });

  it("merges key by key, not file by file", () => {
    userFile({ code: { batch_bytes: 1001 }, log: { level: "debug" } });
    projectFile({ code: { batch_files: 5 } });
    const { config } = load();
    expect(config.code).toMatchObject({ batchFiles: 5, batchBytes: 1001 });
    expect(config.log.level).toBe("debug");
  });

  it("reads lists, numbers and switches from the environment", () => {
    const { config } = load({
      env: { CAIRN_MCP_TOOLSETS: "core, code", CAIRN_CODE_WATCH: "yes", CAIRN_HTTP_RATE_LIMIT_PER_SECOND: "0.5" },
    });
    expect(config.mcp.toolsets).toEqual(["core", "code"]);
    expect(config.code.watch).toBe(true);
    expect(config.http.rateLimit.perSecond).toBe(0.5);
  });

  it("takes an empty variable as not set, and leaves the test set-up's variables alone", () => {
    expect(load({ env: { CAIRN_HTTP_PORT: "", CAIRN_TEST_POSTGRES_URL: "postgres://x" } }).config.http.port).toBe(7483);
  });

  it("makes paths absolute where they were written", () => {
    userFile({ data_dir: "~/data" });
    expect(load().config.dataDir).toBe(join(home, "data"));
    expect(load({ env: { CAIRN_DATA_DIR: "data" } }).config.dataDir).toBe(join(project, "data"));
  });

  it("keeps the space at the end of a prefix, and makes the folder of a model absolute", () => {
    userFile({ embedder: { kind: "onnx", path: "~/models/e5", pooling: "cls" } });
    const { config } = load({ env: { CAIRN_EMBEDDER_QUERY_PREFIX: "query: ", CAIRN_EMBEDDER_MAX_TOKENS: "256" } });
    expect(config.embedder).toMatchObject({ path: join(home, "models", "e5"), pooling: "cls", queryPrefix: "query: ", maxTokens: 256 });
  });

  it("keeps system state in ./.state, and in /var/lib/cairn in production", () => {
    expect(load().config.stateDir).toBe(join(project, ".state"));
    expect(load({ env: { NODE_ENV: "production" } }).config.stateDir).toBe("/var/lib/cairn");
    expect(load({ env: { CAIRN_STATE_DIR: "/srv/state" } }).config.stateDir).toBe("/srv/state");
  });

  it("takes CAIRN_POSTGRES_URL as the storage, unless CAIRN_STORAGE says otherwise", () => {
    const url = "postgres://u@127.0.0.1/db";
    expect(load({ env: { CAIRN_POSTGRES_URL: url } }).config.storage).toBe(url);
    expect(load({ env: { CAIRN_POSTGRES_URL: url, CAIRN_STORAGE: "sqlite" } }).config.storage).toBe("sqlite");
  });

  it("gives OPENAI_API_KEY to OpenAI and to nobody else", () => {
    const env = { OPENAI_API_KEY: "sk-secret" };
    expect(load({ env }).config.embedder.apiKey).toBeUndefined();
    expect(load({ env: { ...env, CAIRN_EMBEDDER_KIND: "tei" } }).config.embedder.apiKey).toBeUndefined();
    expect(load({ env: { ...env, CAIRN_EMBEDDER_KIND: "openai" } }).config.embedder.apiKey).toBe("sk-secret");
    expect(load({ env: { ...env, CAIRN_EMBEDDER_KIND: "openai", CAIRN_EMBEDDER_API_KEY: "own" } }).config.embedder.apiKey).toBe("own");
  });

  it("knows every toolset that an operation belongs to", () => {
    const known = SETTINGS.find((setting) => setting.key === "mcp.toolsets")?.choices;
    expect(known).toEqual(expect.arrayContaining([...new Set(operations.map((one) => one.toolset))].filter((one) => one !== "none")));
  });
});

describe("the defaults of the server", () => {
  it("are the same whether it is started by command or as a library", () => {
    const { config } = load();
    expect(config.http.port).toBe(DEFAULT_PORT);
    expect(config.http.rateLimit).toEqual(DEFAULT_RATE_LIMIT);
    expect(config.mcp.toolsets).toEqual(DEFAULT_TOOLSETS);
  });
});

describe("what is refused", () => {
  it("a misspelt key in a file, with a hint and the file's name", () => {
    userFile({ emmbedder: { kind: "none" } });
    expect(refusal()).toContain('unknown key "emmbedder": did you mean "embedder"?');
    expect(refusal()).toContain(join(home, ".cairn", "config.json"));
  });

  it("a misspelt key inside a group", () => {
    userFile({ http: { prot: 1 } });
    expect(refusal()).toContain('unknown key "http.prot": did you mean "http.port"?');
  });

  it("a misspelt key given as a flag", () => {
    expect(refusal({ flags: [["htpp.port", "1", "--set"]] })).toContain('--set: unknown key "htpp.port": did you mean "http.port"?');
  });

  it("a wrong type, saying which source has it", () => {
    userFile({ http: { port: "many" } });
    expect(refusal()).toMatch(/home\/\.cairn\/config\.json: http\.port expected number/);
    expect(refusal({ env: { CAIRN_HTTP_PORT: "many" } })).toMatch(/CAIRN_HTTP_PORT: http\.port expected number/);
    expect(refusal({ env: { CAIRN_STORAGE: "mysql://x" } })).toMatch(/CAIRN_STORAGE: storage must be "sqlite", "memory" or a postgres/);
  });

  it("a wrong value in a source that would not have won", () => {
    userFile({ http: { port: 99_999 } });
    expect(refusal({ env: { CAIRN_HTTP_PORT: "1" } })).toContain("http.port");
  });

  it("a value outside a closed list, naming the list", () => {
    expect(refusal({ env: { CAIRN_LOG_LEVEL: "loud" } })).toContain("must be one of trace, debug, info, warn, error, silent");
    expect(refusal({ env: { CAIRN_MCP_TOOLSETS: "core,everything" } })).toContain("must be a list of core, code");
  });

  it("a file that is not a JSON object, without quoting it", () => {
    userFile('{\n  "embedder": { "api_key": "sk-secret" \n');
    expect(refusal()).toContain("is not valid JSON");
    expect(refusal()).not.toContain("sk-secret");
    userFile("[]");
    expect(refusal()).toContain("must hold an object");
    userFile({ http: 5 });
    expect(refusal()).toContain("http must be an object with http.host");
    userFile('{"__proto__": {"http": 1}}');
    expect(refusal()).toContain('unknown key "__proto__"');
  });

  it("a file that cannot be read", () => {
    mkdirSync(join(home, ".cairn", "config.json"));
    expect(refusal()).toContain("config.json: is a folder, not a regular file");
  });

  it("anything odd in the files, always as invalid_input and never as a crash", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.json(), fc.string(), fc.dictionary(fc.constantFrom("http", "storage", "log", "data_dir"), fc.anything())),
        (content) => {
          userFile(typeof content === "string" ? content : (JSON.stringify(content) ?? ""));
          try {
            load();
          } catch (error) {
            expect((error as CairnError).code).toBe("invalid_input");
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("what is shown", () => {
  it("names the source of each value and masks every secret", () => {
    userFile({ log: { level: "warn" } });
    const shown = showConfig(
      load({
        env: {
          CAIRN_STORAGE: "postgres://me:hunter2@127.0.0.1/db?password=hunter2",
          CAIRN_EMBEDDER_API_KEY: "hunter2",
          CAIRN_QDRANT_API_KEY: "hunter2",
          CAIRN_QDRANT_URL: "http://me:hunter2@127.0.0.1:6333",
        },
      }),
    );
    expect(JSON.stringify(shown)).not.toContain("hunter2");
    expect(shown.find(({ key }) => key === "log.level")).toMatchObject({
      value: "warn",
      source: `user file ${join(home, ".cairn", "config.json")}`,
    });
    expect(shown.find(({ key }) => key === "embedder.api_key")).toMatchObject({
      value: "********",
      source: "environment CAIRN_EMBEDDER_API_KEY",
    });
    expect(shown.find(({ key }) => key === "http.port")).toMatchObject({ value: 7483, source: "default" });
  });

  it("has a description for every key", () => {
    for (const setting of SETTINGS) expect(setting.description, setting.key).toMatch(/^[A-Z].{10,}\.$/);
  });
});
