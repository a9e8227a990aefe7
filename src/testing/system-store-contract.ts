import type { SystemStorage } from "../ports/system-store.ts";
import { COMPONENT_CASES } from "./component-cases.ts";
import type { ContractCase } from "./contract.ts";
import { SNAPSHOT_CASES } from "./snapshot-cases.ts";

const CASES = { ...COMPONENT_CASES, ...SNAPSHOT_CASES };

/** What `systemStorageContract` needs to check a system storage. */
export interface SystemStorageContract {
  /** A storage in which the systems of this contract are not there yet. */
  readonly open: () => Promise<SystemStorage> | SystemStorage;
}

/** What every storage of systems promises, as cases for any test runner: `for (const { name, run } of systemStorageContract(…)) it(name, run)`. */
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
