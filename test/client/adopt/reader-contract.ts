import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { AdoptReader } from "../../../src/client/adopt/reader.ts";
import { type Machine, machine, photograph, readAll, SIGNAL, writeFile } from "./machine.ts";

export interface Example {
  readonly reader: AdoptReader;
  /** Writes one file or database in the format of the tool and returns its path. */
  readonly write: (host: Machine) => Promise<string>;
  /** What the file contains. */
  readonly items: (host: Machine) => readonly object[];
  /** Whether a file with foreign content can be distinguished from the format. Every Markdown file is a note. */
  readonly hasFormat: boolean;
}

/** Content that attacks a parser, or is simply not of the format. */
const HOSTILE: Readonly<Record<string, string | Buffer>> = {
  empty: "",
  "one brace": "{",
  "binary data": Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * 7_919) % 256)),
  "a line of 20 MB": `{"type":"user","text":"${"x".repeat(20_000_000)}"}\n`,
  "deep nesting": `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}\n`,
  "many fields": `{${Array.from({ length: 600_000 }, (_, index) => `"k${index}":1`).join(",")}}\n`,
  "lone surrogates and NUL": '{"type":"user","message":{"content":"\\ud800 \\u0000"},"payload":{"cwd":"\\u0000"}}\n',
  prototypes: '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}\n',
  "wrong types":
    '{"type":["user"],"message":{"content":{"text":[1]}},"payload":[{"type":1}],"timestamp":{},"cwd":7,"sessionId":[]}\n'.repeat(10),
  "an SQLite header": Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(8_000, 0xff)]),
};

/** The contract of every reader. */
export function readerContract({ reader, write, items, hasFormat }: Example): void {
  describe(`the reader of ${reader.tool}`, () => {
    const hosts: Machine[] = [];
    const fresh = () => {
      const host = machine();
      hosts.push(host);
      return host;
    };
    afterEach(() => {
      for (const host of hosts.splice(0)) host.clear();
    });

    it("finds nothing on a machine without the tool", async () => {
      expect(await readAll(reader, fresh())).toEqual({ units: [], items: [] });
    });

    it("reads the format, twice the same, and leaves the originals untouched", async () => {
      const host = fresh();
      const path = await write(host);
      const before = photograph(host.home);
      const first = await readAll(reader, host);
      expect(first.items).toMatchObject(items(host));
      expect(first.items).toHaveLength(items(host).length);
      expect(first.units).toMatchObject([{ path }]);
      expect(first.units[0]!.bytes).toBeGreaterThan(0);
      expect((await readAll(reader, host)).items).toEqual(first.items);
      expect(photograph(host.home)).toEqual(before);
    });

    it("gives a changed file another fingerprint, and an unchanged one the same", async () => {
      const host = fresh();
      const path = await write(host);
      const fingerprint = async () => (await reader.find(host, SIGNAL)).units[0]!.fingerprint;
      const before = await fingerprint();
      expect(await fingerprint()).toBe(before);
      appendFileSync(path, "\n");
      const grown = await fingerprint();
      expect(grown).not.toBe(before);
      utimesSync(path, 1, 1);
      expect(await fingerprint()).not.toBe(grown);
    });

    it("skips symbolic links, folders and FIFOs in place of a file", async () => {
      const host = fresh();
      const path = await write(host);
      const secret = writeFile(join(host.home, "elsewhere"), "secret");
      for (const replace of [
        () => symlinkSync(secret, path),
        () => mkdirSync(path),
        () => execFileSync("mkfifo", [path]),
        () => symlinkSync("/dev/zero", path),
      ]) {
        rmSync(path, { recursive: true });
        replace();
        expect((await readAll(reader, host)).items.filter(({ type }) => type !== "problem")).toEqual([]);
      }
    });

    it("does not follow a link that replaces a file after it was listed", async () => {
      const host = fresh();
      const path = await write(host);
      const { units } = await reader.find(host, SIGNAL);
      renameSync(path, join(host.home, "moved"));
      symlinkSync(join(host.home, "moved"), path);
      const read = async () => {
        for await (const item of units[0]!.read(SIGNAL)) expect(item.type).toBe("problem");
      };
      await read().catch((error) => expect(["ELOOP", "invalid_input"]).toContain(error.code));
    });

    it.each(Object.keys(HOSTILE))("survives %s", async (name) => {
      const host = fresh();
      const path = await write(host);
      for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
      writeFile(path, HOSTILE[name]!);
      const { items: read } = await readAll(reader, host);
      if (hasFormat)
        expect(read.filter(({ type }) => type !== "problem").every((item) => item.type === "session" && !item.digest.goal)).toBe(true);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    });

    // Every Markdown file is a note, so nothing is unknown there.
    it(hasFormat ? "reports an unknown format and does not guess" : "reads any text as a note", async () => {
      const host = fresh();
      const path = await write(host);
      for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
      writeFile(path, '{"kind":"chat","version":99,"turns":[{"human":"Do it"}]}\n');
      const { items: read } = await readAll(reader, host);
      expect(read).toMatchObject([hasFormat ? { type: "problem", path } : { type: "note" }]);
    });

    it("stops when it is aborted", async () => {
      const host = fresh();
      await write(host);
      const { units } = await reader.find(host, SIGNAL);
      const read = async () => {
        for await (const item of units[0]!.read(AbortSignal.abort())) if (item.type === "note" || item.type === "session") return "read";
        return "read";
      };
      // A small file may be read in one step before the signal is looked at.
      await expect(read().catch((error) => error.name)).resolves.toMatch(/^(AbortError|read)$/);
    });
  });
}
