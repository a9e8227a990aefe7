import type { SystemStorage } from "../ports/system-store.ts";
import { COMPONENT_CASES } from "./component-cases.ts";
import type { ContractCase } from "./contract.ts";
import { SNAPSHOT_CASES } from "./snapshot-cases.ts";

const CASES = { ...COMPONENT_CASES, ...SNAPSHOT_CASES };

/** What `systemStorageContract` needs to check a system storage. */
export interface SystemStorageContract {
  /** Creates a storage without the systems of this contract. */
  readonly open: () => Promise<SystemStorage> | SystemStorage;
}

/** The contract of system storages, as cases for any test runner: `for (const { name, run } of systemStorageContract(…)) it(name, run)`. */
export function systemStorageContract({ open }: SystemStorageContract): readonly ContractCase[] {
  return Object.entries(CASES).map(([name, body]) => ({
    name,
    async run() {
      const storage = await open();
      try {
        await body(await storage.create("shop"), storage);
      } finally {
        await storage.close();
      }
    },
  }));
}
