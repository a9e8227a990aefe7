import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CairnSaver } from "../../src/adapters/langgraph/index.ts";
import { validateSaver } from "./suite.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-langgraph-"));
let files = 0;
const suite = {
  checkpointerName: "CairnSaver on SQLite",
  createCheckpointer: () => new CairnSaver({ storage: "sqlite", path: join(folder, `${files++}.db`) }),
  destroyCheckpointer: (saver: CairnSaver) => saver.close(),
  afterAll: () => rmSync(folder, { recursive: true, force: true }),
};

validateSaver(suite);
