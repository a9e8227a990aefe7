import type { Prompt } from "./prompts.ts";
import type { ResourceKind } from "./resources.ts";

interface WireCheckpoint {
  readonly id: string;
  readonly project_path: string;
  readonly summary: string;
  readonly description: string;
  readonly context: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly created_at: string;
}

/** How many checkpoints a new session is given to begin with. Older ones are found by search. */
const RESUME_COUNT = 5;
const OFFERED_RESOURCES = 20;

/** With a default project people need not type its path. */
export function checkpointPrompts(defaultProject?: string): Prompt[] {
  const project = { name: "project_path", description: "Absolute path of the project.", required: defaultProject === undefined };
  const about = { name: "about", description: "What to resume, in your own words; the newest checkpoints if left out." };
  return [
    {
      name: "resume",
      title: "Resume",
      description: "Pick up the work where an earlier session left it.",
      arguments: [project, about],
      async text({ project_path, about: query }, call) {
        const where = { project_path: project_path ?? defaultProject };
        const found = query
          ? ((await call("checkpoint_search", { ...where, query, top_k: RESUME_COUNT })).results as { checkpoint: WireCheckpoint }[])
          : ((await call("checkpoint_list", { ...where, limit: RESUME_COUNT })).checkpoints as WireCheckpoint[]).map((checkpoint) => ({
              checkpoint,
            }));
        if (found.length === 0)
          return `There is no checkpoint of ${where.project_path} to resume from. Ask what to do, and save a checkpoint when a step is done.`;
        return [
          `Resume the work on ${where.project_path}. These are its ${query ? `checkpoints about ${JSON.stringify(query)}` : "latest checkpoints, newest first"}:`,
          ...found.map(({ checkpoint }) => inFull(checkpoint)),
          "Compare them with the files as they are now, say in a few words where the work stands, then continue with the next step.",
        ].join("\n\n");
      },
    },
    {
      name: "checkpoint",
      title: "Checkpoint",
      description: "Save where this session is, so that a later session can continue.",
      arguments: [{ name: "note", description: "What must not be forgotten." }],
      text: ({ note }) =>
        [
          "Save a checkpoint of this session now, with the tool checkpoint_save.",
          "summary: one line, what was done and what comes next. description: decisions and their reasons, what failed, what is open.",
          "context: facts as pairs, such as branch, files in work, failing test. tags: a few words to find it by. No secrets.",
          ...(note ? [`Be sure to include: ${note}`] : []),
        ].join("\n"),
    },
  ];
}

/** Checkpoints as `cairn://checkpoint/<project path, escaped>/<id>`. Those of the default project are offered; others can be read. */
export function checkpointResources(defaultProject?: string): ResourceKind {
  return {
    name: "checkpoint",
    title: "Checkpoint",
    description: "Where a session was: what was done, what comes next, and the facts around it.",
    mimeType: "text/plain",
    uriTemplate: "cairn://checkpoint/{project_path}/{id}",
    async list(call) {
      if (defaultProject === undefined) return [];
      const { checkpoints } = await call("checkpoint_list", { project_path: defaultProject, limit: OFFERED_RESOURCES });
      return (checkpoints as WireCheckpoint[]).map(({ id, project_path, summary, created_at }) => ({
        uri: `cairn://checkpoint/${encodeURIComponent(project_path)}/${encodeURIComponent(id)}`,
        name: summary,
        description: created_at,
      }));
    },
    read(uri, call) {
      const [, project, id, more] = uri.pathname.split("/");
      if (uri.protocol !== "cairn:" || uri.hostname !== "checkpoint" || !project || !id || more !== undefined) return undefined;
      return call("checkpoint_get", { project_path: unescapeSegment(project), id: unescapeSegment(id) }).then((found) =>
        inFull(found as unknown as WireCheckpoint),
      );
    },
  };
}

function inFull({ id, summary, description, context, tags, created_at }: WireCheckpoint): string {
  return [
    `# ${summary}`,
    `${id}, ${created_at}${tags.length ? `, tags: ${tags.join(", ")}` : ""}`,
    description,
    ...Object.entries(context).map(([key, value]) => `${key}: ${value}`),
  ]
    .filter(Boolean)
    .join("\n");
}

/** A broken escape is left as it is; no such project or id is found then. */
function unescapeSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
