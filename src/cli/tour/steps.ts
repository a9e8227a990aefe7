import { basename } from "node:path";
import { currentBranch, identifyProject } from "../../files/git-repository.ts";

/** The functions of a step. Everything it shows is executed. */
export interface Tour {
  /** Path of the repository of the tour. */
  readonly project: string;
  /** Address of the HTTP and MCP server of the tour. */
  readonly url: string;
  /** Prints a command line, runs it, prints its output, and returns the output. */
  cairn(...args: string[]): Promise<string>;
  /** Prints a request as a `curl` command, sends it, and returns the response. */
  post(path: string, body: unknown): Promise<unknown>;
  show(text: string): void;
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
    why: "Sessions end, are compacted or crash. A checkpoint is durable when the call returns, so the next session can continue.",
    async run({ cairn, project }) {
      await cairn(
        "checkpoint",
        "save",
        `Looked at ${basename(project)}; next: try it on a project of my own`,
        "--tags",
        "tour",
        "--context",
        `branch=${currentBranch(project) ?? "none"}`,
      );
      await cairn(
        "checkpoint",
        "save",
        `Read the code of ${basename(project)}; the tests come next`,
        "--tags",
        "tour",
        "--tags",
        "reading",
      );
    },
  },
  {
    title: "Find it by semantic search, and resume",
    why: "A later session searches in its own words, none of which are in the checkpoint. Resuming returns as much detail as it asks for.",
    async run({ cairn }) {
      await cairn("checkpoint", "search", "what should I attempt afterwards", "--top-k", "2");
      await cairn("checkpoint", "resume", "--level", "context");
    },
  },
  {
    title: "List checkpoints",
    why: "Checkpoints belong to a project, and each project has its own database file.",
    run: async ({ cairn }) => void (await cairn("checkpoint", "list")),
  },
  {
    title: "Get one checkpoint",
    why: "Add --json to any command to get exactly one JSON document for programs.",
    async run({ cairn }) {
      const listed = await cairn("checkpoint", "list", "--limit", "1", "--json");
      await cairn("checkpoint", "get", JSON.parse(listed).checkpoints[0].id);
    },
  },
  {
    title: "Search checkpoints",
    why: "Semantic and keyword search within this project. The score is the semantic similarity, if an embedding model is available.",
    run: async ({ cairn }) => void (await cairn("checkpoint", "search", "what was the last change about")),
  },
  {
    title: "Index the code",
    why: "The code of a repository becomes searchable within seconds, on this machine. A second run reads only changed files.",
    run: async ({ cairn }) => void (await cairn("code", "index", "--wait")),
  },
  {
    title: "Search the code",
    why: "Keywords, semantic similarity and symbol names are ranked together. Each hit has its lines and the reason why it matched.",
    run: async ({ cairn }) => void (await cairn("code", "search", "where is the retry with backoff", "--top-k", "2")),
  },
  {
    title: "The same over HTTP",
    why: "Every command is also a call of the HTTP API. Its documentation is generated from the same description.",
    async run({ post, project, show }) {
      const { total } = (await post("/v1/checkpoint/list", { project_path: identifyProject(project).repository, limit: 1 })) as {
        total: number;
      };
      show(`total: ${total}`);
    },
  },
  {
    title: "The same for an agent, over MCP",
    why: "These are the tools of the MCP server. The default set is small, because every tool takes up context of the agent.",
    async run({ post, show }) {
      const { result } = (await post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" })) as {
        result: { tools: { name: string; description: string }[] };
      };
      for (const { name, description } of result.tools) show(`${name.padEnd(20)} ${description.split("\n")[0]}`);
    },
  },
];
