import { join } from "node:path";
import { matchTable } from "./match-table.ts";

/** The functions of a step. Everything it shows is executed. */
export interface Tour {
  /** Folder of the sample project. */
  readonly project: string;
  /** Folder of the tour's data. */
  readonly dataDir: string;
  /** Prints a command line, runs it, prints its output, and returns the output. */
  cairn(...args: string[]): Promise<string>;
  /** Prints a command line, runs it with `--json`, and returns the document. */
  ask(...args: string[]): Promise<unknown>;
  /** Starts a process of the tour, kills it after `lines` lines unless it ends before, and returns the lines that it printed. */
  runProcess(worker: string, args: readonly string[], lines?: number): Promise<ProcessEnd>;
  /** Sends a request to the tour's server. */
  post(path: string, body: unknown): Promise<unknown>;
  show(text: string): void;
}

export interface ProcessEnd {
  readonly pid: number;
  readonly lines: readonly string[];
  readonly killed: boolean;
}

interface Fix {
  readonly id: string;
  readonly answer: string;
}

export interface TourStep {
  readonly title: string;
  /** One or two sentences on the purpose of the step. */
  readonly why: string;
  run(tour: Tour): Promise<void>;
}

/** The steps of the guided tour. */
export const tourSteps: readonly TourStep[] = [
  {
    title: "Save where you are",
    why: "Sessions end, are compacted or crash. A checkpoint is on disk when the call returns.",
    async run({ cairn }) {
      await cairn("checkpoint", "save", "Users were logged out too early; sessions now last eight hours", "--tags", "login");
      await cairn("checkpoint", "save", "Cart totals are computed in cents; the rounding test is still red", "--tags", "cart");
      await cairn("checkpoint", "save", "Staging runs on the new cluster; production waits for its certificate", "--tags", "deploy");
    },
  },
  {
    title: "Find it in other words",
    why: "No keyword of the question is in the checkpoint. The model runs on this machine and needs no key.",
    async run({ ask, show }) {
      const answer = await ask("checkpoint", "search", "wrong sums in the shopping basket");
      const { results } = answer as { results: { score: number; checkpoint: { summary: string } }[] };
      show(matchTable(results.map(({ score, checkpoint }) => ({ score, text: checkpoint.summary }))));
    },
  },
  {
    title: "Kill a process in the middle of a save",
    why: "A process saves checkpoints as fast as it can and is killed without warning (SIGKILL).",
    async run({ ask, cairn, runProcess, show, dataDir, project }) {
      const { pid, lines } = await runProcess("save-worker", [dataDir, project], 25);
      show(`Process ${pid} was killed. It had received ${lines.length} acknowledgements.`);
      const { total } = (await ask("checkpoint", "list", "--tags", "migration", "--limit", "1")) as { total: number };
      const last = lines.at(-1);
      if (last === undefined || total < lines.length) throw new Error("A saved checkpoint is missing.");
      show(`Stored: ${total}. Every acknowledged checkpoint is there, the last one too:`);
      await cairn("checkpoint", "get", last);
    },
  },
  {
    title: "Kill a process in the middle of a run",
    why: "A run is a graph of steps whose state is stored after each step. This one is killed while it prints the label.",
    async run({ runProcess, show, dataDir }) {
      const path = join(dataDir, "tour-runs.db");
      const first = await runProcess("run-worker", [path, "run"]);
      show(`Process ${first.pid}: ${first.lines.join(", ")} … killed`);
      const second = await runProcess("run-worker", [path, "resume"]);
      show(`Process ${second.pid}: ${second.lines.join(", ")} … completed`);
      if (second.lines.includes("charge card")) throw new Error("A finished step was repeated.");
      show("The card was charged once.");
    },
  },
  {
    title: "Let experience decide",
    why: "Two fixes for one error. Feedback after use changes which one comes first.",
    async run({ cairn, ask, show }) {
      const error = "Error: connect ECONNREFUSED 127.0.0.1:5432";
      const save = (id: string, answer: string) => cairn("knowledge", "save", error, answer, "--id", id, "--kind", "remediation");
      const showOrder = async () => {
        const { results } = (await ask("knowledge", "search", error, "--ranking", "success")) as { results: { knowledge: Fix }[] };
        show(results.map(({ knowledge }, index) => `${index + 1}. ${knowledge.answer}`).join("\n"));
        return results[0]?.knowledge.id;
      };
      await save("start", "Start PostgreSQL.");
      await save("reinstall", "Reinstall PostgreSQL.");
      const first = await showOrder(); // the newest of two equal ones
      const other = first === "start" ? "reinstall" : "start";
      await cairn("knowledge", "feedback", first!, "--no-success");
      await cairn("knowledge", "feedback", other, "--success");
      if ((await showOrder()) !== other) throw new Error("Feedback did not change the ranking.");
    },
  },
  {
    title: "Search code by what it does",
    why: "The code is indexed on this machine. A second run reads only changed files, and hits that changed since are marked.",
    async run({ cairn }) {
      await cairn("code", "index", "--wait");
      await cairn("code", "search", "what happens if the bank does not answer", "--top-k", "1");
    },
  },
  {
    title: "What an agent gets",
    why: "The same operations as MCP tools. The default set is small, because tool definitions take up context.",
    async run({ post, show }) {
      const { result } = (await post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" })) as { result: { tools: { name: string }[] } };
      show(result.tools.map(({ name }) => name).join(", "));
    },
  },
];
