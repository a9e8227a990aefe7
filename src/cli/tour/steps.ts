import { basename } from "node:path";
import { currentBranch, identifyProject } from "../../files/git-repository.ts";

/** What a step can do. Everything it shows really happens. */
export interface Tour {
  /** The repository that the tour is about. */
  readonly project: string;
  /** Where HTTP and MCP are served meanwhile. */
  readonly url: string;
  /** Shows a command line, runs it, shows what it prints, and gives that back. */
  cairn(...args: string[]): Promise<string>;
  /** Shows a request as the `curl` line that makes it, makes it, and gives the answer. */
  post(path: string, body: unknown): Promise<unknown>;
  show(text: string): void;
}

export interface TourStep {
  readonly title: string;
  /** One or two sentences: why anybody would want this. */
  readonly why: string;
  run(tour: Tour): Promise<void>;
}

/** The guided tour. Each capability adds a few steps of its own. */
export const tourSteps: readonly TourStep[] = [
  {
    title: "Save where you are",
    why: "An agent's session ends, is compacted or crashes. A checkpoint is on disk before the call returns, so the next session can go on.",
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
    title: "Find it by meaning, and go on",
    why: "A later session asks in its own words: none of these stand in the checkpoint. Resuming gives as much as it wants to read.",
    async run({ cairn }) {
      await cairn("checkpoint", "search", "what should I attempt afterwards", "--top-k", "2");
      await cairn("checkpoint", "resume", "--level", "context");
    },
  },
  {
    title: "See what there is",
    why: "Checkpoints belong to a project, and each project has a database file of its own: nothing leaks from one to another.",
    run: async ({ cairn }) => void (await cairn("checkpoint", "list")),
  },
  {
    title: "Read one in full",
    why: "Add --json to any command to get exactly one JSON document for programs.",
    async run({ cairn }) {
      const listed = await cairn("checkpoint", "list", "--limit", "1", "--json");
      await cairn("checkpoint", "get", JSON.parse(listed).checkpoints[0].id);
    },
  },
  {
    title: "Find one again",
    why: "By meaning and by words, within this project. The score is the likeness in meaning, where an embedding model is at hand.",
    run: async ({ cairn }) => void (await cairn("checkpoint", "search", "what was the last change about")),
  },
  {
    title: "Index the code",
    why: "A repository's code becomes searchable within seconds, on this machine. A second run over the same tree reads only what changed.",
    run: async ({ cairn }) => void (await cairn("code", "index", "--wait")),
  },
  {
    title: "Ask where something is",
    why: "Words, meaning and symbol names rank together; each hit has its lines and says why it matched.",
    run: async ({ cairn }) => void (await cairn("code", "search", "where is the retry with backoff", "--top-k", "2")),
  },
  {
    title: "The same over HTTP",
    why: "Every command is also a call of the HTTP API, described once and documented from the same source.",
    async run({ post, project, show }) {
      const { total } = (await post("/v1/checkpoint/list", { project_path: identifyProject(project).repository, limit: 1 })) as {
        total: number;
      };
      show(`total: ${total}`);
    },
  },
  {
    title: "The same for an agent, over MCP",
    why: "These are the tools that an MCP client is offered. A project starts with few, because every tool costs the agent context.",
    async run({ post, show }) {
      const { result } = (await post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" })) as {
        result: { tools: { name: string; description: string }[] };
      };
      for (const { name, description } of result.tools) show(`${name.padEnd(20)} ${description.split("\n")[0]}`);
    },
  },
];
