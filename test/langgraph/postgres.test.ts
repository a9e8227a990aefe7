import { describe } from "vitest";
import { CairnSaver } from "../../src/adapters/langgraph/index.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { validateSaver } from "./suite.ts";

/** One database; each saver finds it empty. */
let database: TestDatabase | undefined;
const suite = {
  checkpointerName: "CairnSaver on PostgreSQL",
  async createCheckpointer() {
    database ??= await testDatabase();
    const saver = new CairnSaver({ storage: "postgres", url: database.url, poolMax: 4 });
    await saver.prune({ olderThan: "9999-01-01T00:00:00.000Z" });
    return saver;
  },
  destroyCheckpointer: (saver: CairnSaver) => saver.close(),
};

describe.runIf(postgresWanted)("LangGraph on PostgreSQL", () => {
  validateSaver(suite);
});
