import type { z } from "zod";
import { definitionOf, unwrap } from "../operations/zod-schema.ts";
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

/** Every key there is, in the order of the schema. */
export const SETTINGS: readonly Setting[] = leaves(ConfigSchema, "");

export const settingByKey: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((setting) => [setting.key, setting]));

function leaves(schema: z.ZodType, prefix: string): Setting[] {
  return Object.entries(definitionOf(schema).shape ?? {}).flatMap(([name, field]) => {
    const key = prefix + name;
    return definitionOf(field).shape ? leaves(field, `${key}.`) : [leaf(key, field)];
  });
}

function leaf(key: string, field: z.ZodType): Setting {
  const meta = field.meta() as SettingMeta & { description: string };
  const core = unwrap(field);
  const choices = definitionOf(core.type === "array" ? unwrap(definitionOf(core).element!) : core).entries;
  return {
    ...meta,
    key,
    envNames: [`CAIRN_${key.toUpperCase().replaceAll(".", "_")}`, ...(meta.env ?? [])],
    schema: field,
    kind: core.type === "number" || core.type === "boolean" ? core.type : core.type === "array" ? "list" : "string",
    choices: choices && Object.keys(choices),
    fallback: definitionOf(field).defaultValue,
  };
}
