import type { z } from "zod";
import { ConfigSchema, type SettingMeta } from "./schema.ts";

/** One key of the configuration, as the schema describes it. */
export interface Setting extends SettingMeta {
  /** As in the file, with dots: `http.port`. */
  readonly key: string;
  /** Its own environment variable first, then the others that count. */
  readonly envNames: readonly string[];
  readonly description: string;
  readonly schema: z.ZodType;
  /** What a text (environment, flag) is read as. */
  readonly kind: "string" | "number" | "boolean" | "list";
  readonly choices: readonly string[] | undefined;
  /** `undefined` when there is none, or when it depends on the machine. */
  readonly fallback: unknown;
}

interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly entries?: Readonly<Record<string, string>>;
  readonly defaultValue?: unknown;
}

const definition = (schema: z.ZodType): Definition => schema._zod.def as unknown as Definition;

/** Every key there is, in the order of the schema. */
export const SETTINGS: readonly Setting[] = leaves(ConfigSchema, "");

export const settingByKey: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((setting) => [setting.key, setting]));

function leaves(schema: z.ZodType, prefix: string): Setting[] {
  return Object.entries(definition(schema).shape ?? {}).flatMap(([name, field]) => {
    const key = prefix + name;
    return definition(field).shape ? leaves(field, `${key}.`) : [leaf(key, field)];
  });
}

function leaf(key: string, field: z.ZodType): Setting {
  const meta = field.meta() as SettingMeta & { description: string };
  const core = unwrap(field);
  const choices = definition(core.type === "array" ? unwrap(definition(core).element!) : core).entries;
  return {
    ...meta,
    key,
    envNames: [`CAIRN_${key.toUpperCase().replaceAll(".", "_")}`, ...(meta.env ?? [])],
    schema: field,
    kind: core.type === "number" || core.type === "boolean" ? core.type : core.type === "array" ? "list" : "string",
    choices: choices && Object.keys(choices),
    fallback: definition(field).defaultValue,
  };
}

/** The schema inside `optional` and `default`. */
function unwrap(schema: z.ZodType): z.ZodType {
  const inner = definition(schema).innerType;
  return inner ? unwrap(inner) : schema;
}
