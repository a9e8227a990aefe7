import { z } from "zod";
import type { ApiKey } from "../model/api-key.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { type CallContext, operation } from "../operations/operation.ts";
import { isBlank, unstorable } from "../text/clean.ts";

const Line = (max: number) =>
  z
    .string()
    .min(1, "must not be empty")
    .max(max, `must have at most ${max} characters`)
    .check((context) => {
      const problem =
        context.value !== "" && isBlank(context.value) ? "must not be blank: it has no visible character" : unstorable(context.value);
      if (problem) context.issues.push({ code: "custom", message: problem, input: context.value });
    });

const KeyOutput = z.object({
  id: z.string(),
  label: z.string(),
  access: z.enum(["read", "write", "admin"]),
  all_projects: z.boolean(),
  projects: z.array(z.string()),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
});

export const keyCreate = operation({
  name: "key_create",
  summary: "Make an API key for the HTTP server. The key is shown once and cannot be had again.",
  input: z.strictObject({
    label: Line(LIMITS.labelChars).describe("Whose key it is, to recognise it later."),
    access: z.enum(["read", "write", "admin"]).default("read").describe("What it may do; each level includes the ones before it."),
    projects: z
      .array(Line(LIMITS.projectPathChars))
      .min(1)
      .max(LIMITS.keyProjects)
      .optional()
      .describe("The projects it may touch, by path or id. Give these or all_projects."),
    all_projects: z.boolean().default(false).describe("It may touch every project, also ones made later."),
    expires_at: z.iso.datetime().optional().describe("When it ends, as ISO 8601 in UTC; without it the key holds until revoked."),
  }),
  output: KeyOutput.extend({ key: z.string().describe("The key itself: cairn_<id>_<secret>.") }),
  access: "admin",
  annotations: { idempotent: false },
  toolset: "none",
  http: { method: "POST", path: "/v1/key/create", status: 201 },
  cli: {
    positional: ["label"],
    examples: [
      'cairn key create "build server" --access write --projects /home/me/app',
      "cairn key create ops --access admin --all-projects",
    ],
  },
  render: ({ key, id, label, access }) => `${key}\nKeep it now: it is not shown again. Key ${id} (${label}) may ${access}.`,
  async run(cairn, { label, access, projects, allProjects, expiresAt }, context) {
    onlyForAllProjects(context);
    if (allProjects === (projects !== undefined))
      throw new CairnError("invalid_input", "Name the projects of the key, or set all_projects: exactly one of the two.");
    return shown(await cairn.keys.create({ label, access, projects: projects ?? "all", expiresAt }));
  },
});

export const keyList = operation({
  name: "key_list",
  summary: "List the API keys, without their secrets.",
  input: z.strictObject({}),
  output: z.object({ keys: z.array(KeyOutput) }),
  access: "admin",
  annotations: { readOnly: true },
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "none",
  http: { method: "GET", path: "/v1/key/list" },
  cli: {
    examples: ["cairn key list"],
    view: { table: "keys", columns: ["id", "access", "label", "all_projects", "projects", "created_at", "expires_at"] },
  },
  render: ({ keys }) =>
    keys.length === 0
      ? "There are no keys."
      : keys
          .map((key) => `${key.id}  ${key.access}  ${key.all_projects ? "all projects" : key.projects.join(", ")}  ${key.label}`)
          .join("\n"),
  async run(cairn, _input, context) {
    onlyForAllProjects(context);
    return { keys: (await cairn.keys.list()).map(shown) };
  },
});

export const keyRevoke = operation({
  name: "key_revoke",
  summary: "Revoke an API key: it is refused from the next request on.",
  input: z.strictObject({ id: Line(LIMITS.idChars).describe("The id of the key, the middle part of cairn_<id>_<secret>.") }),
  output: z.object({ revoked: z.boolean() }),
  access: "admin",
  annotations: { destructive: true },
  toolset: "none",
  http: { method: "DELETE", path: "/v1/key/{id}" },
  cli: { positional: ["id"], examples: ["cairn key revoke 0f3a9c27b1d4"] },
  render: ({ revoked }) => (revoked ? "Revoked." : "There was no such key."),
  async run(cairn, { id }, context) {
    onlyForAllProjects(context);
    return { revoked: await cairn.keys.revoke(id) };
  },
});

export const keyOperations = [keyCreate, keyList, keyRevoke];

/** Whoever makes keys could make one for any project, so an admin of some projects may not. */
function onlyForAllProjects({ allProjects }: CallContext): void {
  if (!allProjects)
    throw new CairnError("forbidden", "Keys are managed with an admin key for all projects. Use such a key, or the command line.");
}

function shown<Key extends ApiKey>(key: Key) {
  return { ...key, allProjects: key.projects === "all", projects: key.projects === "all" ? [] : key.projects };
}
