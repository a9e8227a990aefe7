import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Benchmark, type Metric, quantile, root, runBenchmark } from "./frame.ts";

const NOT_BENCHMARKS = ["frame.ts", "main.ts", "runs-postgres.ts", "runs-support.ts"];

const args = process.argv.slice(2);
const json = args.includes("--json");
const [name, ...rest] = args.filter((argument) => argument !== "--json");
const names = readdirSync(join(root, "bench"))
  .filter((file) => file.endsWith(".ts") && !NOT_BENCHMARKS.includes(file))
  .map((file) => file.slice(0, -3))
  .sort();

if (name === undefined || !names.includes(name)) refuse(`Benchmarks: ${names.join(", ")}`);

const { default: benchmark } = (await import(`./${name}.js`)) as { default: Benchmark };
if (!json) process.stderr.write(`${name}: ${benchmark.summary}\n`);
const known = benchmark.flags ?? [];
const valued = benchmark.values ?? [];
const values = new Map(rest.flatMap((one, index) => (valued.includes(one) ? [[one, rest[index + 1] ?? ""] as const] : [])));
const flags = rest.filter((one, index) => !valued.includes(one) && !valued.includes(rest[index - 1] ?? ""));
const options = [...known, ...valued.map((one) => `${one} VALUE`)].join(", ") || "none";
if (!flags.every((flag) => known.includes(flag)) || [...values.values()].includes("")) refuse(`Options of ${name}: ${options}`);
const metrics = await runBenchmark(benchmark, flags, values);
const about = { name, node: process.version, cpus: availableParallelism() };
process.stdout.write(
  json
    ? `${JSON.stringify({ ...about, results: Object.fromEntries(metrics.map((metric) => [metric.name, metric.value])) })}\n`
    : `${table(metrics)}\n${name} on Node ${about.node}, ${about.cpus} CPUs\n`,
);

function refuse(hint: string): never {
  process.stderr.write(`Usage: npm run --silent bench -- <name> [options] [--json]\n${hint}\n`);
  process.exit(2);
}

/** Formats medians with the interquartile range of the samples, and the ratio to the compared metric of this run. */
function table(all: readonly Metric[]): string {
  const byName = new Map(all.map((metric) => [metric.name, metric]));
  const rows = all.map(({ name, value, unit, samples, against }) => {
    const peer = against === undefined ? undefined : byName.get(against);
    return [
      name,
      `${figure(value)} ${unit}`,
      samples && samples.length > 1 ? `${figure(quantile(samples, 0.25))} – ${figure(quantile(samples, 0.75))}` : "",
      peer ? `${figure(value / peer.value)} × ${peer.name}` : "",
    ];
  });
  const cells = [["metric", "value", "interquartile", "ratio"], ...rows];
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => (column === 1 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function figure(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
