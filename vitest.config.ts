import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // A fast run leaves out what needs PostgreSQL; test/setup/global.ts says so.
    exclude: process.env.CAIRN_TEST_FAST === "1" ? ["test/**/*.postgres.test.ts"] : [],
    globalSetup: ["test/setup/global.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Commands and servers that a test starts search by words, unless the test asks for a model: loading one takes a second.
    env: { CAIRN_EMBEDDER_KIND: "none" },
    pool: "forks",
    maxWorkers: 2,
  },
});
