import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // A fast run leaves out what needs PostgreSQL, nginx or Caddy; test/setup/global.ts says so.
    exclude: process.env.CAIRN_TEST_FAST === "1" ? ["test/**/*.postgres.test.ts", "test/security/reverse-proxy.test.ts"] : [],
    globalSetup: ["test/setup/global.ts"],
    // Far more than any test takes: a limit is there to end what hangs, and a busy machine is many times slower than a quiet one.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 120_000,
    expect: { poll: { timeout: 120_000 } },
    // Commands and servers that a test starts search by words, unless the test asks for a model: loading one takes a second.
    env: { CAIRN_EMBEDDER_KIND: "none" },
    pool: "forks",
    maxWorkers: 2,
  },
});
