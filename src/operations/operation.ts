import type { z } from "zod";
import type { Access } from "../model/api-key.ts";
import { LIMITS } from "../model/limits.ts";
import { once, onFirstUse, withProperties } from "../model/once.ts";
import type { Cairn } from "./cairn.ts";
import type { Camel } from "./wire.ts";

export type { Access } from "../model/api-key.ts";

/** Which group of MCP tools an operation belongs to. Only `core` is offered unless the person asks for more; `none` is never a tool. */
export type Toolset = "core" | "code" | "knowledge" | "runs" | "systems" | "admin" | "none";

export interface CallContext {
  /** Aborted when the caller went away or the operation's time is up. */
  readonly signal: AbortSignal;
  /** Reports the progress of long work to the caller. */
  readonly progress: (done: number, total: number | undefined, message?: string) => void;
  /** Whether this caller may see that project. Operations over several projects must ask. */
  readonly mayTouch: (projectId: string) => boolean;
  /** Whether this caller may touch every project, also ones made later. */
  readonly allProjects: boolean;
  /** The id of the API key that calls; `undefined` for the local user. */
  readonly keyId: string | undefined;
}

export interface Operation<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject> {
  /** `noun_verb`: the MCP tool of that name, `cairn noun verb`, and `POST /v1/noun/verb` unless `http` says otherwise. */
  readonly name: string;
  /** One sentence, for people and for agents. */
  readonly summary: string;
  /** More for agents that choose between tools, where one sentence is not enough. */
  readonly description?: string;
  /** Wire schemas: snake_case keys, strict. A field named `project_path` scopes the call to that project. */
  readonly input: Input;
  readonly output: Output;
  /** Whether the input has the field `project_path`. */
  readonly hasProject: boolean;
  readonly access: Access;
  readonly annotations: Annotations;
  readonly limits: Limits;
  readonly toolset: Toolset;
  /** Another route than the default one. The path is whole and may hold fields of the input: `/v1/key/{id}`. */
  readonly http?: { readonly method: "GET" | "POST" | "PATCH" | "DELETE"; readonly path: string; readonly status?: number };
  readonly cli?: {
    /** No command: only programs have a use for it. */
    readonly hidden?: true;
    /** Fields that may be given without a flag, in this order. */
    readonly positional?: readonly string[];
    /** --project may name a project that has a database and no folder on this machine, as on a server. */
    readonly storedProject?: true;
    /** Whole command lines, shown under --help. */
    readonly examples?: readonly string[];
    /** Fields that take a file's content: the command line takes its path and reads it. Its name may fill another field. */
    readonly files?: Readonly<Record<string, { readonly nameInto?: string }>>;
    /** Flags that set a configuration key for this call: what only the person at the machine decides is no field of the input. */
    readonly settings?: Readonly<Record<string, { readonly setting: string; readonly description: string; readonly placeholder?: string }>>;
    /** Whether the answer, though it is one, asks for attention: the process then ends with an exit code of its own. */
    readonly attention?: (output: Readonly<Record<string, unknown>>) => boolean;
    /** One sentence on what a cancelled call leaves behind, where the call is not atomic. */
    readonly cancelled?: string;
    /** How a person sees the answer, where `render` is not enough. */
    readonly view?: View;
    /** The same, where a terminal wants less text than an agent. */
    readonly text?: (output: z.output<Output>, style: TextStyle) => string;
    /** The lines of `text` are what the person asked for, so the terminal wraps them instead of cutting them. */
    readonly wholeLines?: true;
  };
  readonly mcp?: {
    /** The structured answer that an agent gets unless it asks for `detail: "full"`. Default: the text of `render`. */
    readonly compact?: (output: z.output<Output>) => Record<string, unknown>;
    /** The list in the output that a token budget shortens from its end. */
    readonly rows?: string;
    /** Fields that the tool accepts and its listed schema omits: agents rarely need them, and each costs tokens in every session. */
    readonly unlisted?: readonly string[];
    /** Loads the tool into the first request of a session. Clients may load the others when the agent searches for them. */
    readonly alwaysLoad?: true;
    /** Words by which an agent that searches for a tool finds this one. */
    readonly searchHint?: string;
  };
  /** A few lines for people and for agents that read text. */
  readonly render: (output: z.output<Output>) => string;
  readonly run: (cairn: Cairn, input: Camel<z.output<Input>>, context: CallContext) => Promise<unknown>;
}

/** Text styles, as far as the terminal supports them. */
export interface TextStyle {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
}

/** A table of the items in one field of the output, or the output's own fields line by line. Fields in the order given. */
export type View =
  | {
      readonly table: string;
      readonly columns: readonly string[];
      /** Columns that a narrow terminal leaves out, the first one first. */
      readonly optional?: readonly string[];
    }
  | { readonly record: readonly string[] };

/** Hints for clients, as MCP defines them. */
export interface Annotations {
  readonly readOnly: boolean;
  /** Removes or overwrites something. */
  readonly destructive: boolean;
  /** Repeating the call changes nothing more. */
  readonly idempotent: boolean;
}

export interface Limits {
  readonly timeoutMs: number;
  readonly bodyBytes?: number;
}

/** An operation as it is written: what follows from its access and its schema is left out. */
type Description<Input extends z.ZodObject, Output extends z.ZodObject> = Omit<
  Operation<Input, Output>,
  "input" | "output" | "hasProject" | "annotations" | "limits"
> & {
  /** A function builds the schema on first use: a command that runs often then builds only its own. */
  readonly input: Input | (() => Input);
  readonly output: Output | (() => Output);
  readonly annotations?: Partial<Annotations>;
  readonly limits?: Partial<Limits>;
};

/** Describes an operation once; MCP, HTTP and CLI are loops over the list. */
export function operation<Input extends z.ZodObject, Output extends z.ZodObject>(description: Description<Input, Output>): Operation {
  const { input, output, annotations, limits, ...rest } = description;
  const readOnly = description.access === "read";
  const schema = <Schema>(given: Schema | (() => Schema)) => (typeof given === "function" ? (given as () => Schema)() : given);
  const inputOnce = once(() => schema(input));
  const schemas = onFirstUse<Pick<Operation, "input" | "output" | "hasProject">>({
    input: inputOnce,
    output: () => schema(output),
    hasProject: () => "project_path" in inputOnce().shape,
  });
  return withProperties(schemas, {
    ...rest,
    annotations: { readOnly, destructive: false, idempotent: true, ...annotations },
    limits: { timeoutMs: readOnly ? LIMITS.listTimeoutMs : LIMITS.saveTimeoutMs, ...limits },
  }) as unknown as Operation;
}

/** Returns an operation that runs differently. A spread would build its schemas. */
export function withRun(changed: Operation, run: Operation["run"]): Operation {
  return withProperties(changed, { run });
}
