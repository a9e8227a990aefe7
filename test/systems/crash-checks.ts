import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect } from "vitest";
import { type System, type SystemStorageOptions, system } from "../../src/systems.ts";
import { dataOf, LAST, scenario } from "./scenario.mjs";

type Said = { component: "till" | "stock"; offset: number; outcome: string } | { snapshot: string };

/**
 * Kills one process after another, each one write later than the last (or every N writes), until one comes to its end. Each has a
 * place of its own, which is looked at afterwards. Gives the number of deaths.
 */
export async function killedAtEveryPoint(place: () => { storage: SystemStorageOptions; systemId: string }, step: number): Promise<number> {
  let deaths = 0;
  for (let next = 1; ; next += 2 * step) {
    const ends = await Promise.all(
      [next, next + step].map(async (dieAt) => {
        const { storage, systemId } = place();
        const { died, said } = await untilDeath(storage, systemId, dieAt);
        await expectSound(storage, systemId, said);
        return died;
      }),
    );
    deaths += ends.filter(Boolean).length;
    if (ends.includes(false)) return deaths;
  }
}

/** Runs the scenario in a process of its own, to its end or until it dies. Returns its output. */
async function untilDeath(storage: SystemStorageOptions, systemId: string, dieAt: number): Promise<{ died: boolean; said: Said[] }> {
  const script = join(import.meta.dirname, "crash-process.mjs");
  const child = spawn(process.execPath, [script, JSON.stringify({ storage, systemId, dieAt })], { stdio: ["ignore", "pipe", "inherit"] });
  const said: Said[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => said.push(JSON.parse(line)));
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => child.once("close", (...end) => resolve(end)));
  if (signal !== "SIGKILL") expect(code).toBe(0);
  return { died: signal === "SIGKILL", said };
}

/** What a killed process left: nothing it had acknowledged is missing, no effect happened twice or by half. */
async function expectSound(storage: SystemStorageOptions, systemId: string, said: readonly Said[]): Promise<void> {
  const shop = system({ systemId, storage, snapshots: { keep: 1, everyMs: 3_600_000 } });
  const times = { till: await expectSoundComponent(shop, "till"), stock: await expectSoundComponent(shop, "stock") };
  for (const line of said)
    if ("offset" in line && line.outcome !== "failed") expect(times[line.component]).toHaveProperty(String(line.offset), 1);

  const snapshots = await shop.snapshots();
  const complete = snapshots.filter((snapshot) => snapshot.complete);
  for (const { id } of complete) expect(await shop.verify({ snapshotId: id, level: "full" })).toMatchObject([{ good: true, problems: [] }]);
  const reported = said.findLast((line) => "snapshot" in line);
  if (reported) expect(complete.length).toBeGreaterThan(0);
  if (complete.length > 0) {
    // The newest that has its mark, whatever lies half done above it.
    expect((await shop.restore()).snapshotId).toBe(complete[0]!.id);
    await expectSoundComponent(shop, "till");
    await expectSoundComponent(shop, "stock");
  } else await expect(shop.restore()).rejects.toMatchObject({ code: "not_found" });

  // Sources send everything again, and the result is that of a run that was never cut off.
  await scenario(shop);
  await expectSoundComponent(shop, "till");
  for (const name of ["till", "stock"] as const) {
    const component = shop.component(name);
    const offsets = Array.from({ length: LAST[name] + 1 }, (_, offset) => offset);
    expect(await component.get("times")).toEqual(Object.fromEntries(offsets.map((offset) => [offset, 1])));
    expect(await component.get("sum")).toBe(offsets.reduce((sum, offset) => sum + dataOf(offset), 0));
    expect(await component.port("in").position()).toMatchObject({ position: LAST[name], highest: LAST[name] });
  }
  await shop.close();
}

/** State, inbox and offsets of a component agree. Returns how often each message had its effect. */
export async function expectSoundComponent(shop: System, name: string): Promise<Record<string, number>> {
  const component = shop.component(name);
  const port = component.port("in");
  const times = (await component.get<Record<string, number>>("times")) ?? {};
  expect(Object.values(times).every((count) => count === 1)).toBe(true);
  const done = Object.keys(times).map(Number);
  expect((await component.get<number>("sum")) ?? 0).toBe(done.reduce((sum, offset) => sum + dataOf(offset), 0));
  const received = new Set([...done, ...(await port.pending()).map(({ offset }) => offset)]);
  let contiguous = -1;
  while (received.has(contiguous + 1)) contiguous++;
  expect((await port.position()).position).toBe(contiguous);
  return times;
}
