import { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { type CallContext, operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";
import { OLDER_THAN_FORMS, OlderThan } from "../operations/write-schemas.ts";
import { VERIFY_LEVELS } from "./verify.ts";

const SystemId = z
  .string()
  .max(LIMITS.systemIdChars)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must begin with a letter or digit and contain only letters, digits, ".", "_" and "-"')
  .describe("The id of the system.");
const Name = text(LIMITS.systemNameChars, 1);
const SnapshotId = text(LIMITS.idChars, 1);

const Snapshot = z.object({
  id: z.string(),
  created_at: z.iso.datetime(),
  mode: z.enum(["consistent", "per_component"]),
  complete: z.boolean().describe("Set last. An incomplete snapshot is never restored."),
  checksum: z.string().optional(),
  components: z.int(),
  messages: z.int(),
  state_keys: z.int(),
  bytes: z.int(),
});

const Port = z.object({
  port: z.string(),
  position: z.int().describe("Every offset up to this one has been received; the source continues after it."),
  highest: z.int(),
  first_offset: z.int(),
  pruned_to: z.int(),
  ahead: z.int().describe("Out-of-order offsets received above the position."),
  pending: z.int(),
  done: z.int(),
  dead: z.int(),
});

export const systemList = operation({
  name: "system_list",
  summary: "List the stored systems.",
  input: z.strictObject({}),
  output: z.object({ systems: z.array(z.object({ system_id: z.string(), location: z.string(), size_bytes: z.int().optional() })) }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "systems",
  cli: { examples: ["cairn system list"], view: { table: "systems", columns: ["system_id", "size_bytes", "location"] } },
  render: ({ systems }) => systems.map(({ system_id, location }) => `${system_id}  ${location}`).join("\n") || "No systems.",
  run: (cairn, _, context) => {
    assertMaySee(context);
    return cairn.systems.list();
  },
});

export const systemGet = operation({
  name: "system_get",
  summary: "Show a system: components, port positions, pending and failed messages.",
  input: z.strictObject({ system_id: SystemId }),
  output: z.object({
    system_id: z.string(),
    components: z.array(
      z.object({
        component: z.string(),
        version: z.int().describe("The number of commits."),
        updated_at: z.iso.datetime(),
        state_keys: z.int(),
        state_bytes: z.int(),
        ports: z.array(Port),
      }),
    ),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "systems",
  cli: { positional: ["system_id"], examples: ["cairn system get billing", "cairn system get billing --json"] },
  render: ({ components }) =>
    components
      .flatMap(({ component, version, updated_at, state_keys, state_bytes, ports }) => [
        `${component}: ${version} commits, last ${updated_at}; ${state_keys} keys of state, ${state_bytes} bytes`,
        ...ports.map(
          ({ port, position, highest, pending, done, dead }) =>
            `  ${port}: position ${position}${highest > position ? ` (${position + 1} is missing, received up to ${highest})` : ""}, ${done} done, ${pending} pending, ${dead} dead`,
        ),
      ])
      .join("\n") || "No messages were received yet.",
  run: (cairn, input, context) => {
    assertMaySee(context);
    return cairn.systems.get(input);
  },
});

export const systemSnapshots = operation({
  name: "system_snapshots",
  summary: "List a system's snapshots, newest first.",
  input: z.strictObject({ system_id: SystemId }),
  output: z.object({ snapshots: z.array(Snapshot) }),
  access: "read",
  toolset: "systems",
  cli: {
    positional: ["system_id"],
    examples: ["cairn system snapshots billing"],
    view: {
      table: "snapshots",
      columns: ["id", "created_at", "complete", "mode", "components", "messages", "state_keys", "bytes"],
      optional: ["state_keys", "messages", "components", "mode"],
    },
  },
  render: ({ snapshots }) =>
    snapshots
      .map(({ id, created_at, complete, bytes }) => `${id}  ${created_at}  ${complete ? `${bytes} bytes` : "unfinished"}`)
      .join("\n") || "No snapshots.",
  run: async (cairn, input, context) => {
    assertMaySee(context);
    const { snapshots } = await cairn.systems.snapshots(input);
    return { snapshots: snapshots.map(withoutNull) };
  },
});

export const systemSnapshot = operation({
  name: "system_snapshot",
  summary: "Take a snapshot of a system now.",
  input: z.strictObject({
    system_id: SystemId,
    mode: z
      .enum(["consistent", "per_component"])
      .default("consistent")
      .describe("consistent: one moment for all components. per_component: each at its own moment."),
    keep: z.int().min(1).max(LIMITS.systemSnapshotsKept).optional().describe("Keep only the newest N."),
  }),
  output: Snapshot,
  access: "admin",
  annotations: { idempotent: false },
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "systems",
  cli: { positional: ["system_id"], examples: ["cairn system snapshot billing"] },
  render: ({ id, components, messages, state_keys, bytes }) =>
    `Snapshot ${id}: ${components} components, ${state_keys} keys of state, ${messages} open messages, ${bytes} bytes.`,
  run: async (cairn, input, context) => {
    assertMaySee(context);
    return cairn.systems.snapshot(input);
  },
});

export const systemVerify = operation({
  name: "system_verify",
  summary: "Verify a system's snapshots, or one of them.",
  input: z.strictObject({
    system_id: SystemId,
    snapshot_id: SnapshotId.optional().describe("Only this one."),
    level: z
      .enum(VERIFY_LEVELS)
      .default("checksum")
      .describe("count: all parts are there; integrity: they make sense; checksum: byte for byte; full: a trial restore as well."),
  }),
  output: z.object({
    snapshots: z.array(
      z.object({
        snapshot_id: z.string(),
        created_at: z.iso.datetime(),
        level: z.enum(VERIFY_LEVELS),
        good: z.boolean(),
        problems: z.array(z.string()),
      }),
    ),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "systems",
  cli: {
    positional: ["system_id"],
    examples: ["cairn system verify billing", "cairn system verify billing --level full"],
    attention: ({ snapshots }) => (snapshots as readonly { good: boolean }[]).some(({ good }) => !good),
  },
  render: ({ snapshots }) =>
    snapshots
      .map(
        ({ snapshot_id, created_at, good, problems }) => `${snapshot_id}  ${created_at}  ${good ? "good" : `BAD: ${problems.join("; ")}`}`,
      )
      .join("\n") || "No snapshots.",
  run: (cairn, input, context) => {
    assertMaySee(context);
    return cairn.systems.verify(input);
  },
});

export const systemRestore = operation({
  name: "system_restore",
  summary: "Restore a system from a snapshot (default: the newest valid one). Stop its processes first.",
  input: z.strictObject({ system_id: SystemId, snapshot_id: SnapshotId.optional().describe("Default: the newest valid one.") }),
  output: z.object({
    snapshot_id: z.string(),
    created_at: z.iso.datetime(),
    ports: z.array(z.object({ component: z.string(), port: z.string(), position: z.int() })),
    skipped: z.array(z.object({ snapshot_id: z.string(), problems: z.array(z.string()) })),
  }),
  access: "admin",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "systems",
  cli: {
    positional: ["system_id"],
    examples: ["cairn system restore billing"],
    attention: ({ skipped }) => (skipped as readonly unknown[]).length > 0,
  },
  render: ({ snapshot_id, created_at, ports, skipped }) =>
    [
      ...skipped.map(({ snapshot_id: id, problems }) => `Skipped ${id}: ${problems.join("; ")}`),
      `Back to snapshot ${snapshot_id} of ${created_at}. Send again:`,
      ...ports.map(({ component, port, position }) => `  ${component} ${port}: everything after offset ${position}`),
    ].join("\n"),
  run: (cairn, input, context) => {
    assertMaySee(context);
    return cairn.systems.restore(input);
  },
});

export const systemDeadLetters = operation({
  name: "system_dead_letters",
  summary: "List dead letters: messages whose attempts are exhausted.",
  input: z.strictObject({
    system_id: SystemId,
    component: Name.optional(),
    port: Name.optional(),
    include_data: z.boolean().default(false).describe("Include the data as JSON, if it is short enough."),
    limit: z.int().min(1).max(LIMITS.listMax).default(20),
    cursor: text(LIMITS.systemCursorChars, 1).optional().describe("next_cursor of the page before."),
  }),
  output: z.object({
    dead_letters: z.array(
      z.object({
        component: z.string(),
        port: z.string(),
        id: z.string(),
        offset: z.int(),
        received_at: z.iso.datetime(),
        attempts: z.int(),
        reason: z.string(),
        data_json: z.string().optional(),
      }),
    ),
    next_cursor: z.string().optional(),
  }),
  access: "read",
  toolset: "systems",
  cli: {
    positional: ["system_id"],
    examples: ["cairn system dead-letters billing"],
    view: {
      table: "dead_letters",
      columns: ["component", "port", "id", "offset", "attempts", "received_at", "reason"],
      optional: ["offset", "received_at", "attempts"],
    },
  },
  render: ({ dead_letters, next_cursor }) =>
    [
      ...dead_letters.map(({ component, port, id, attempts, reason }) => `${component} ${port} ${id}: ${attempts} attempts, ${reason}`),
      next_cursor ? `More: call again with cursor ${next_cursor}` : "",
    ]
      .filter(Boolean)
      .join("\n") || "No dead letters.",
  run: (cairn, input, context) => {
    assertMaySee(context);
    return cairn.systems.deadLetters(input);
  },
});

export const systemRequeue = operation({
  name: "system_requeue",
  summary: "Retry dead letters: all of a port, or by id.",
  input: z.strictObject({
    system_id: SystemId,
    component: Name,
    port: Name,
    ids: z.array(text(LIMITS.systemMessageIdChars, 1)).min(1).max(1_000).optional().describe("Only these messages."),
  }),
  output: z.object({ requeued: z.int() }),
  access: "admin",
  limits: { timeoutMs: LIMITS.upkeepTimeoutMs },
  toolset: "systems",
  cli: { positional: ["system_id", "component", "port"], examples: ["cairn system requeue billing till orders"] },
  render: ({ requeued }) => `${requeued} messages wait to be tried again.`,
  run: (cairn, input, context) => {
    assertMaySee(context);
    return cairn.systems.requeue(input);
  },
});

export const systemPrune = operation({
  name: "system_prune",
  summary: "Delete processed messages. Pending, failed and out-of-order messages are kept.",
  input: z.strictObject({
    system_id: SystemId,
    keep_last: z.int().min(0).max(1_000_000_000).optional().describe("Keep the newest N offsets of each port."),
    older_than: OlderThan.optional().describe(`Only messages received earlier: ${OLDER_THAN_FORMS}`),
    dry_run: z.boolean().default(false).describe("Only report what would be deleted."),
  }),
  output: z.object({ messages: z.int(), dry_run: z.boolean() }),
  access: "admin",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "systems",
  cli: {
    positional: ["system_id"],
    examples: ["cairn system prune billing --keep-last 10000", "cairn system prune billing --older-than 30d --dry-run"],
  },
  render: ({ messages, dry_run }) =>
    dry_run
      ? `${messages} processed messages would be deleted.`
      : `Deleted ${messages} processed messages. Their offsets are still recognised.`,
  run: (cairn, input, context) => {
    assertMaySee(context);
    return cairn.systems.prune(input, { signal: context.signal });
  },
});

export const systemOperations = [
  systemList,
  systemGet,
  systemSnapshots,
  systemSnapshot,
  systemVerify,
  systemRestore,
  systemDeadLetters,
  systemRequeue,
  systemPrune,
];

/** Raises `forbidden` for a key limited to projects, because a system belongs to no project. */
function assertMaySee({ allProjects }: CallContext): void {
  if (!allProjects) throw new CairnError("forbidden", "Systems belong to no project. Use a key that is not limited to projects.");
}

function withoutNull<Info extends { readonly checksum: string | null }>({ checksum, ...info }: Info) {
  return checksum === null ? info : { ...info, checksum };
}
