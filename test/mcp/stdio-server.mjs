// A server process for the tests: node stdio-server.mjs <data folder> [default project]
import { runMcpStdio } from "../../dist/mcp/main.js";
import { open } from "../../dist/open/open.js";
import { operations } from "../../dist/operations/list.js";
import { probeOperations } from "./probe-operations.mjs";

const [dataDir, defaultProject] = process.argv.slice(2);
const cairn = await open({ dataDir, embedder: { kind: "none" } });
await runMcpStdio({
  cairn,
  operations: [...operations, ...probeOperations],
  defaultProject,
  onError: (error) => console.error(error.message),
});
console.error("closed");
