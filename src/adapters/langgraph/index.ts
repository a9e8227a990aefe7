export type { PrunedThreads, PruneThreads } from "./retention.ts";
export { CairnSaver, type CairnSaverOptions } from "./saver.ts";
