import type { JsonSchema } from "../../../src/http/example.ts";
import type { Grammar } from "./valid.ts";

/** Characters of one text in a maximal input, at most. */
const TEXT_CHARS = 20_000;

/** Fields without which a larger part of the operation runs: an invented value of theirs is refused early. */
const LEFT_OUT = [
  "cursor",
  "kinds",
  "model",
  "snapshot_id",
  "version_id",
  "expires_at",
  "all_projects",
  "symbol",
  "offset",
  "changed_since",
  "validate",
  "format",
];

/** Builds the largest input that the schema accepts within a budget of characters: every field, long texts, full lists. */
export function maximalValue(schema: JsonSchema, grammar: Grammar, budget: { chars: number }, name = "", place = ""): unknown {
  const pool = grammar.pools[name];
  if (pool && place.indexOf("/") === place.lastIndexOf("/")) return pool[0];
  if (typeof schema.$ref === "string")
    return maximalValue(grammar.schemas[schema.$ref.split("/").at(-1)!] ?? {}, grammar, budget, name, place);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum.at(-1);
  const options = schema.anyOf ?? (schema.oneOf as readonly JsonSchema[] | undefined);
  if (options) return maximalValue(options[0]!, grammar, budget, name, place);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "object": {
      const {
        properties,
        additionalProperties,
        maxProperties = 50,
      } = schema as JsonSchema & { additionalProperties?: JsonSchema; maxProperties?: number };
      const inner =
        properties ?? Object.fromEntries(Array.from({ length: maxProperties }, (_, index) => [`k${index}`, additionalProperties ?? {}]));
      return Object.fromEntries(
        Object.entries(inner)
          .filter(([field]) => !LEFT_OUT.includes(field) && !(field === "path" && "text" in inner))
          .map(([field, one]) => [field, maximalValue(one, grammar, budget, field, `${place}/${field}`)]),
      );
    }
    case "array": {
      const items: unknown[] = [];
      const most = schema.maxItems ?? 1_000;
      while (items.length < most && budget.chars > 0)
        items.push(maximalValue(schema.items ?? {}, grammar, budget, name.replace(/s$/, ""), `${place}/${items.length}`));
      return items;
    }
    case "integer":
    case "number":
      return Math.min(schema.maximum ?? 1_000, 1_000_000);
    case "boolean":
      return false;
    default: {
      if (schema.format === "date-time") return "2026-01-31T12:00:00.000Z";
      const long = name === "content" ? TEXT_CHARS : Math.min(schema.maxLength ?? TEXT_CHARS, TEXT_CHARS);
      const text = `n${place.replaceAll(/\W/g, "x")} ${"word ".repeat(long / 5)}`.slice(0, name === "path" || name === "id" ? 60 : long);
      budget.chars -= text.length + name.length + 8;
      return text.trimEnd();
    }
  }
}
