import { deletionSuite } from "./deletion.ts";

deletionSuite("SQLite", async (dataDir) => ({ dataDir }));
deletionSuite("in memory", async () => ({ storage: "memory" }));
