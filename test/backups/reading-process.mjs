// A process that keeps a project's database open. Says on stdout what it holds, at the start and on request.
//   node reading-process.mjs <data folder> <project>
import { open } from "../../dist/index.js";

const [dataDir, projectPath] = process.argv.slice(2);
const cairn = await open({ dataDir, embedder: [] });
const tell = async () => {
  const { checkpoints } = await cairn.checkpoints.list({ projectPath, limit: 100 });
  process.stdout.write(`${JSON.stringify(checkpoints.map(({ summary }) => summary).sort())}\n`);
};
await tell();
for await (const _ of process.stdin) await tell();
await cairn.close();
