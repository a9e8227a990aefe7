/** One case of a contract, for any test runner: `for (const { name, run } of storageContract(…)) it(name, run)`. */
export interface ContractCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}
