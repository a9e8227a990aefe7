/** One promise of a port, as a check for any test runner: `for (const { name, run } of storageContract(…)) it(name, run)`. */
export interface ContractCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}
