import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { median, quantile, runBenchmark } from "../bench/frame.ts";

const root = resolve(import.meta.dirname, "..");
const script = (name: string, ...args: string[]) =>
  spawnSync(process.execPath, [join(root, "scripts", `${name}.mjs`), ...args], { encoding: "utf8", cwd: root, timeout: 800_000 });

describe("the benchmark frame", () => {
  it("prints one object and nothing else with --json", { timeout: 900_000 }, () => {
    const { status, stdout } = script("bench", "edges", "--json");
    expect(status).toBe(0);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ name: "edges", node: process.version, cpus: expect.any(Number) });
    const metrics = ["save", "get"].flatMap((verb) => ["library", "mcp", "http"].map((edge) => `${verb}_${edge}_us`));
    for (const metric of metrics) expect(report.results[metric]).toBeGreaterThan(0);
  });

  it("lists the benchmarks for an unknown name", () => {
    const { status, stdout, stderr } = script("bench", "nonsense");
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain("edges");
  });

  it("takes turns, omits the warm-up, and cleans up after a failure", async () => {
    const order: string[] = [];
    let cleaned = false;
    const metrics = await runBenchmark({
      summary: "a test",
      async run(bench) {
        const times = await bench.times({ a: () => order.push("a"), b: () => order.push("b") }, { rounds: 3, warmUp: 1 });
        expect(Object.values(times).map((taken) => taken.length)).toEqual([3, 3]);
        bench.record({ name: "rounds", value: times.a!.length, unit: "" });
      },
    });
    expect(order.join("")).toBe("abababab");
    expect(metrics).toEqual([{ name: "rounds", value: 3, unit: "" }]);
    const failing = runBenchmark({
      summary: "a failure",
      async run(bench) {
        bench.defer(() => {
          cleaned = true;
        });
        throw new Error("on purpose");
      },
    });
    await expect(failing).rejects.toThrow("on purpose");
    expect(cleaned).toBe(true);
  });

  it("computes quantiles", () => {
    expect([median([3, 1, 2]), quantile([1, 2, 3, 4], 0.25), quantile([5], 0.99)]).toEqual([2, 2, 5]);
    expect(() => median([])).toThrow();
  });
});

describe("the examples", () => {
  it.each(readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts")))("%s runs", { timeout: 900_000 }, (file) => {
    const { status, stderr } = script("example", file.slice(0, -3));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});
