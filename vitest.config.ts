import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // A fast run omits tests that need PostgreSQL, nginx, Caddy or a browser; test/setup/global.ts reports it.
    exclude:
      process.env.CAIRN_TEST_FAST === "1"
        ? ["test/**/*.postgres.test.ts", "test/**/*.browser.test.ts", "test/security/reverse-proxy.test.ts"]
        : [],
    globalSetup: ["test/setup/global.ts"],
    // Far longer than any test takes: the limit ends tests that hang, and a busy machine is many times slower than an idle one.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 120_000,
    expect: { poll: { timeout: 120_000 } },
    // Commands and servers that a test starts use keyword search, unless the test selects a model: loading one takes a second.
    env: { CAIRN_EMBEDDER_KIND: "none" },
    pool: "forks",
    maxWorkers: 2,
  },
});
