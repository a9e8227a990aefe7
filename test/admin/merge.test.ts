import { mergeSuite } from "./merge.ts";

mergeSuite("SQLite", async (dataDir) => ({ dataDir }));
mergeSuite("memory", async () => ({ storage: "memory" }));
