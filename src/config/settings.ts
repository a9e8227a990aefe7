import type { z } from "zod";
import { definitionOf, unwrap } from "../operations/zod-schema.ts";
import { CONFIG, type DescribedSetting, type SettingMeta } from "./schema.ts";

/** One key of the configuration, as it is described. What follows from its schema is found on first use. */
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

/** A group of keys, or one key. */
type Node = DescribedSetting<unknown> | { readonly [name: string]: Node };

/** Every key there is, in the order of the description. */
export const SETTINGS: readonly Setting[] = leaves(CONFIG as { readonly [name: string]: Node }, "");

export const settingByKey: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((setting) => [setting.key, setting]));

function leaves(group: { readonly [name: string]: Node }, prefix: string): Setting[] {
  return Object.entries(group).flatMap(([name, node]) =>
    isSetting(node) ? [leaf(prefix + name, node)] : leaves(node, `${prefix}${name}.`),
  );
}

function isSetting(node: Node): node is DescribedSetting<unknown> {
  return typeof node.schema === "function";
}

function leaf(key: string, { schema, default: fallback, ...known }: DescribedSetting<unknown>): Setting {
  return {
    ...known,
    key,
    envNames: [`CAIRN_${key.toUpperCase().replaceAll(".", "_")}`, ...(known.env ?? [])],
    fallback,
    get schema() {
      return schema();
    },
    get kind() {
      const { type } = unwrap(schema());
      return type === "number" || type === "boolean" ? type : type === "array" ? "list" : "string";
    },
    get choices() {
      const core = unwrap(schema());
      const { entries } = definitionOf(core.type === "array" ? unwrap(definitionOf(core).element!) : core);
      return entries && Object.keys(entries);
    },
  };
}
