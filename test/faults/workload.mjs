// A process that writes to one part of Cairn and prints one JSON line for each acknowledged write: node workload.mjs <kind> <folder>
// With a third argument it only creates the database that the workload starts from.
// A write that fails is printed with its error code, and the next one is tried. Runs from dist/.
import { writeSync } from "node:fs";
import { join } from "node:path";
import { open } from "../../dist/index.js";
import { openRunStore } from "../../dist/runs.js";
import { system } from "../../dist/systems.js";
import { hashEmbedder } from "../support/hash-embedder.mjs";
import { dataOf, effect } from "../systems/scenario.mjs";

const [kind, folder, onlyCreate] = process.argv.slice(2);
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);
const attempt = async (work, describe) => {
  try {
    const result = await work();
    say(describe(result));
    return result;
  } catch (error) {
    say({ error: error.code ?? "none", message: error.message });
  }
};

const project = "/home/me/app";
const openCairn = () => open({ dataDir: folder, embedder: [hashEmbedder({ model: "test", dimension: 16 })] });

const workloads = {
  /** One save into an empty folder. */
  async create() {
    const cairn = await openCairn();
    await attempt(
      () => cairn.checkpoints.save({ projectPath: project, summary: "created" }),
      ({ id, summary }) => ({ id, summary }),
    );
    await cairn.close();
  },

  async saves() {
    if (onlyCreate) return workloads.create();
    const cairn = await openCairn();
    const save = (summary) =>
      attempt(
        () => cairn.checkpoints.save({ projectPath: project, summary }),
        ({ id }) => ({ id, summary }),
      );
    const first = await save("first");
    await Promise.all(["second", "third"].map(save)); // one group commit
    if (first)
      await attempt(
        () => cairn.checkpoints.update({ projectPath: project, id: first.id, summary: "changed" }),
        ({ id }) => ({ id, summary: "changed" }),
      );
    await save("fourth");
    await cairn.close();
  },

  /** Rounds of the same files with other content, each followed by a save that must survive a power cut. */
  async index() {
    if (onlyCreate) return workloads.create();
    const cairn = await openCairn();
    for (let round = 1; round <= 3; round++) {
      const files = [0, 1].map((file) => ({
        path: `src/file${file}.py`,
        content: `def f${file}_round${round}():\n    return shared(${round})\n`,
      }));
      await attempt(
        () => cairn.code.indexBatch({ projectPath: project, files }),
        () => ({ round }),
      );
      await attempt(
        () => cairn.checkpoints.save({ projectPath: project, summary: `round ${round}` }),
        ({ id, summary }) => ({ id, summary }),
      );
    }
    await cairn.close();
  },

  async runs() {
    const store = await openRunStore({ storage: "sqlite", path: join(folder, "runs.db") });
    if (onlyCreate) {
      await store.save({ runId: "created", nodeId: "n", state: Buffer.from("created") });
      return store.close();
    }
    const lease = { graph: "g", fingerprint: "f", owner: "me", leaseMs: 60_000 };
    const started = await attempt(
      () => store.start({ runId: "r", ...lease, first: { nodeId: "first", state: Buffer.from("first") } }),
      () => ({ runId: "r", nodeId: "first", state: "first" }),
    );
    const [runId, options] = started ? ["r", { fence: started.fence }] : ["free", {}];
    for (let i = 0; i < 4; i++) {
      const [nodeId, state] = [`n${i}`, `${i}:${"x".repeat(i * 700)}`];
      await attempt(
        () => store.save({ runId, nodeId, state: Buffer.from(state) }, options),
        () => ({ runId, nodeId, state }),
      );
    }
    await store.close();
  },

  async inbox() {
    const shop = system({ systemId: "shop", storage: { storage: "sqlite", stateDir: folder }, snapshots: { keep: 1, everyMs: 3_600_000 } });
    const receive = (component, offset) =>
      attempt(
        () =>
          shop
            .component(component)
            .port("in")
            .receive({ id: `m${offset}`, offset, data: dataOf(offset) }, effect),
        ({ outcome }) => ({ component, offset, outcome }),
      );
    if (onlyCreate) {
      await receive("created", 0);
      return shop.close();
    }
    await Promise.all([receive("till", 1), receive("till", 0), receive("stock", 0)]);
    await attempt(
      () => shop.snapshot({ mode: "consistent" }),
      ({ id }) => ({ snapshot: id }),
    );
    await Promise.all([receive("till", 2), receive("till", 3)]);
    await receive("stock", 1);
    await shop.close();
  },
};

try {
  await workloads[kind]();
} catch (error) {
  say({ error: error.code ?? "none", message: error.message }); // opening or closing failed
}
