import { isolationSuite } from "./isolation.ts";

isolationSuite("SQLite", async (dataDir) => ({ dataDir }));
isolationSuite("memory", async () => ({ storage: "memory" }));
