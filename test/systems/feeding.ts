import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect } from "vitest";
import { type SystemStorageOptions, system } from "../../src/systems.ts";

interface Feeder {
  readonly done: readonly number[];
  readonly ended: Promise<number | null>;
  /** Resolves after N receipts. */
  reached(receipts: number): Promise<void>;
  kill(): void;
}

function feed(storage: SystemStorageOptions, systemId: string, count: number): Feeder {
  const script = join(import.meta.dirname, "feed-process.mjs");
  const child = spawn(process.execPath, [script, JSON.stringify({ storage, systemId, count })], { stdio: ["ignore", "pipe", "inherit"] });
  const done: number[] = [];
  let receipts = 0;
  let wanted: [number, () => void] | undefined;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { offset, outcome } = JSON.parse(line);
    if (outcome === "done") done.push(offset);
    if (++receipts === wanted?.[0]) wanted[1]();
  });
  return {
    done,
    ended: new Promise((resolve) => child.once("close", resolve)),
    reached: (target) =>
      new Promise((resolve) => {
        if (receipts >= target) resolve();
        wanted = [target, resolve];
      }),
    kill: () => child.kill("SIGKILL"),
  };
}

/** Three processes send the same messages to one system at once, and one of them is killed: every message has its effect once. */
export async function fedByThree(storage: SystemStorageOptions, systemId: string, count: number): Promise<void> {
  const feeders = [0, 1, 2].map(() => feed(storage, systemId, count));
  await feeders[0]!.reached(count / 10);
  feeders[0]!.kill();
  const [killed, ...others] = await Promise.all(feeders.map(({ ended }) => ended));
  expect(others).toEqual([0, 0]);
  expect(killed).toBeOneOf([null, 0]); // done before the signal came, where the machine is busy

  const shop = system({ systemId, storage, snapshots: { everyMs: 0 } });
  const offsets = Array.from({ length: count }, (_, offset) => offset);
  for (const [name, parity] of [
    ["even", 0],
    ["odd", 1],
  ] as const) {
    const own = offsets.filter((offset) => offset % 2 === parity);
    const component = shop.component(name);
    for (const offset of own) expect(await component.get(`times ${offset >> 1}`)).toBe(1);
    expect(await component.get("sum")).toBe(own.reduce((sum, offset) => sum + offset, 0));
    expect(await component.port("in").position()).toMatchObject({ position: own.length - 1, highest: own.length - 1 });
  }
  // No two processes received the same outcome "done"; a message of the killed process may still be done.
  const reported = feeders.flatMap(({ done }) => done);
  expect(new Set(reported).size).toBe(reported.length);
  for (const report of await shop.verify({ level: "full" }))
    if (report.problems[0] !== "it was never finished") expect(report.good).toBe(true);
  await shop.close();
}
