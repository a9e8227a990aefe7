import { z } from "zod";
import { ACCESS_LEVELS, type ApiKey } from "../model/api-key.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { assertAllProjects } from "../operations/database-selection.ts";
import { operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";

const KeyOutput = z.object({
  id: z.string(),
  label: z.string(),
  access: z.enum(ACCESS_LEVELS),
  all_projects: z.boolean(),
  projects: z.array(z.string()),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
  last_used_at: z.iso.datetime().optional().describe("Recorded about once per minute."),
});

export const keyCreate = operation({
  name: "key_create",
  summary: "Create an API key for the HTTP server. The key is shown once.",
  input: z.strictObject({
    label: text(LIMITS.labelChars, 1).describe("Name of the key in listings, such as its owner."),
    access: z.enum(ACCESS_LEVELS).default("read").describe("Access level; each level includes the ones before it."),
    projects: z
      .array(text(LIMITS.projectPathChars, 1))
      .min(1)
      .max(LIMITS.keyProjects)
      .optional()
      .describe("The projects that the key may access, by path or name. Required unless all_projects is set."),
    all_projects: z.boolean().default(false).describe("The key may access every project, also future ones."),
    expires_at: z.iso.datetime().optional().describe("Expiry time, as ISO 8601 in UTC. Without it the key is valid until revoked."),
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
  render: ({ key, id, label, access }) => `${key}\nStore it now: it is not shown again. Key ${id} (${label}) has ${access} access.`,
  async run(cairn, { label, access, projects, allProjects, expiresAt }, context) {
    assertAllProjects(context);
    if (allProjects === (projects !== undefined)) throw new CairnError("invalid_input", "Set either projects or all_projects.");
    return toOutput(await cairn.keys.create({ label, access, projects: projects ?? "all", expiresAt }));
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
    view: {
      table: "keys",
      columns: ["id", "access", "label", "all_projects", "projects", "created_at", "expires_at", "last_used_at"],
      optional: ["created_at", "all_projects", "expires_at", "last_used_at"],
    },
  },
  render: ({ keys }) =>
    keys.length === 0
      ? "There are no keys."
      : keys
          .map((key) => `${key.id}  ${key.access}  ${key.all_projects ? "all projects" : key.projects.join(", ")}  ${key.label}`)
          .join("\n"),
  async run(cairn, _input, context) {
    assertAllProjects(context);
    return { keys: (await cairn.keys.list()).map(toOutput) };
  },
});

export const keyRevoke = operation({
  name: "key_revoke",
  summary: "Revoke an API key. Every server refuses it within a second.",
  input: z.strictObject({ id: text(LIMITS.idChars, 1).describe("The id of the key, the middle part of cairn_<id>_<secret>.") }),
  output: z.object({ revoked: z.boolean() }),
  access: "admin",
  annotations: { destructive: true },
  toolset: "none",
  http: { method: "DELETE", path: "/v1/key/{id}" },
  cli: { positional: ["id"], examples: ["cairn key revoke 0f3a9c27b1d4"] },
  render: ({ revoked }) => (revoked ? "Revoked." : "There is no such key."),
  async run(cairn, { id }, context) {
    assertAllProjects(context);
    return { revoked: await cairn.keys.revoke(id) };
  },
});

export const keyRotate = operation({
  name: "key_rotate",
  summary: "Replace an API key by a new one with the same access. Both are valid during the overlap.",
  input: z.strictObject({
    id: text(LIMITS.idChars, 1).describe("The id of the key, the middle part of cairn_<id>_<secret>."),
    overlap_hours: z.number().min(0).max(LIMITS.keyOverlapHours).default(24).describe("Hours for which the old key stays valid."),
    expires_at: z.iso
      .datetime()
      .optional()
      .describe("Expiry time of the new key. Without it the new key is valid for as long as the old one was meant to be."),
  }),
  output: KeyOutput.extend({
    key: z.string().describe("The new key itself: cairn_<id>_<secret>."),
    replaced_id: z.string(),
    replaced_expires_at: z.iso.datetime(),
  }),
  access: "admin",
  annotations: { idempotent: false },
  toolset: "none",
  http: { method: "POST", path: "/v1/key/{id}/rotate", status: 201 },
  cli: { positional: ["id"], examples: ["cairn key rotate 0f3a9c27b1d4", "cairn key rotate 0f3a9c27b1d4 --overlap-hours 0"] },
  render: ({ key, id, replaced_id, replaced_expires_at }) =>
    `${key}\nStore it now: it is not shown again. Key ${id} replaces ${replaced_id}, which is valid until ${replaced_expires_at}.`,
  async run(cairn, input, context) {
    assertAllProjects(context);
    const { replaced, ...key } = await cairn.keys.rotate(input);
    return { ...toOutput(key), replacedId: replaced.id, replacedExpiresAt: replaced.expiresAt! };
  },
});

export const keyMigrate = operation({
  name: "key_migrate",
  summary: "Copy the API keys of the data folder into the PostgreSQL database, for all its servers.",
  input: z.strictObject({}),
  output: z.object({
    migrated: z.int().describe("Keys that were copied."),
    present: z.int().describe("Keys of the data folder that the database already had."),
  }),
  access: "admin",
  annotations: {},
  toolset: "none",
  http: { method: "POST", path: "/v1/key/migrate" },
  cli: { examples: ["cairn key migrate"] },
  render: ({ migrated, present }) =>
    `${migrated} migrated, ${present} already there.${migrated + present > 0 ? " keys.json is now keys.json.migrated." : ""}`,
  async run(cairn, _input, context) {
    assertAllProjects(context);
    return cairn.keys.migrate();
  },
});

export const keyOperations = [keyCreate, keyList, keyRotate, keyMigrate, keyRevoke];

function toOutput<Key extends ApiKey>(key: Key) {
  return { ...key, allProjects: key.projects === "all", projects: key.projects === "all" ? [] : key.projects };
}
