/** Words of other tools for the verbs of Cairn. */
const SYNONYMS = new Map<string, readonly string[]>(
  Object.entries({
    ls: ["list"],
    show: ["get"],
    view: ["get"],
    cat: ["get"],
    info: ["get"],
    rm: ["delete", "revoke"],
    remove: ["delete", "revoke"],
    del: ["delete", "revoke"],
    add: ["save", "create"],
    new: ["save", "create"],
    create: ["save"],
    edit: ["update"],
    find: ["search"],
    query: ["search"],
    grep: ["search"],
    stop: ["cancel"],
    start: ["index"],
    build: ["index"],
    clear: ["prune"],
    gc: ["prune"],
  }),
);

/** Whole command lines that people try first. */
const LINES = new Map<string, string>(
  Object.entries({
    list: "cairn ls",
    get: "cairn checkpoint get <id>",
    delete: "cairn checkpoint delete <id>",
    index: "cairn code index",
    grep: "cairn code search <query>",
    find: "cairn search <query>",
    status: "cairn code status, or cairn stats",
    server: "cairn serve",
    start: "cairn serve, or cairn mcp for one client",
    install: "cairn init",
    setup: "cairn init",
    version: "cairn --version",
    "config list": "cairn config get",
    "config show": "cairn config get",
    "run start": "run() in the program that defines the graph, see docs/runs.md",
  }),
);

/** Returns what a user who typed an unknown command probably wanted, or `undefined`. `known` are the words that may follow `path`. */
export function nearMiss(path: readonly string[], word: string, known: readonly string[]): string | undefined {
  const line = LINES.get([...path, word].join(" "));
  if (line !== undefined) return `Use ${line}.`;
  const verb = SYNONYMS.get(word)?.find((candidate) => known.includes(candidate));
  return verb === undefined ? undefined : `Did you mean "${[...path, verb].join(" ")}"?`;
}
