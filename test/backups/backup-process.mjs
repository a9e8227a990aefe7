// Backs a system up, or restores it, and reports how that went. Runs from dist/.
//   node backup-process.mjs backup|restore <data folder> <state folder> <backup folder>
import { open } from "../../dist/index.js";

const [action, dataDir, stateDir, backupDir] = process.argv.slice(2);
const cairn = await open({ dataDir, stateDir, backupDir, embedder: [] });
const which = { kind: "system", id: "shop" };
try {
  await (action === "backup" ? cairn.backups.create(which) : cairn.backups.restore({ which, overwrite: true }));
  process.stdout.write("done\n");
} catch (error) {
  process.stdout.write(`${error.code}: ${error.message}\n`);
}
await cairn.close();
