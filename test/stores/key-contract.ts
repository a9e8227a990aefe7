import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StoredApiKey } from "../../src/model/api-key.ts";
import type { KeyStore } from "../../src/ports/key-store.ts";

/** The contract of every store of API keys. `open` returns a new empty store. */
export function keyStoreContract(name: string, open: () => Promise<{ readonly store: KeyStore; close(): Promise<void> }>): void {
  describe(`The store of API keys ${name}`, () => {
    let opened: Awaited<ReturnType<typeof open>>;
    let store: KeyStore;
    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(() => opened.close());

    it("returns what was added, in the order of creation", async () => {
      expect(await store.all()).toEqual([]);
      const added = [key("b"), key("a", { projects: ["/home/me/app", "shared"], expiresAt: "2027-01-01T00:00:00.000Z" })];
      for (const one of added) await store.add(one);
      expect(await store.all()).toEqual(added);
    });

    it("does not change a key that is added twice", async () => {
      await store.add(key("a"));
      await store.add(key("a", { label: "other" }));
      expect(await store.all()).toEqual([key("a")]);
    });

    it("adds the successor of a key and makes the key expire, together", async () => {
      await store.add(key("a"));
      expect(await store.replace("a", "2026-12-01T00:00:00.000Z", key("b"))).toBe(true);
      expect(await store.all()).toEqual([key("a", { expiresAt: "2026-12-01T00:00:00.000Z" }), key("b")]);
    });

    it("adds no successor of an unknown key", async () => {
      expect(await store.replace("a", "2026-12-01T00:00:00.000Z", key("b"))).toBe(false);
      expect(await store.all()).toEqual([]);
    });

    it("records the latest use and ignores earlier ones and unknown keys", async () => {
      await store.add(key("a"));
      const used = async () => (await store.all())[0]!.lastUsedAt;
      for (const at of ["2026-03-02T00:00:00.000Z", "2026-03-03T00:00:00.000Z", "2026-03-01T00:00:00.000Z"]) await store.markUsed("a", at);
      await store.markUsed("unknown", "2026-03-01T00:00:00.000Z");
      await expect.poll(used).toBe("2026-03-03T00:00:00.000Z"); // within a second
    });

    it("removes a key once", async () => {
      await store.add(key("a"));
      expect(await store.remove("a")).toBe(true);
      expect(await store.remove("a")).toBe(false);
      expect(await store.all()).toEqual([]);
    });

    it("keeps all keys of concurrent changes", async () => {
      const ids = Array.from({ length: 20 }, (_, index) => `key-${index}`);
      await Promise.all(ids.map((id) => store.add(key(id))));
      expect((await store.all()).map(({ id }) => id).sort()).toEqual([...ids].sort());
    });
  });
}

export function key(id: string, changes: Partial<StoredApiKey> = {}): StoredApiKey {
  const createdAt = "2026-03-01T00:00:00.000Z";
  return { id, label: `key of ${id}`, access: "write", projects: "all", createdAt, secretHash: "0".repeat(64), ...changes };
}
