import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Typed } from "./thread-store.ts";

/**
 * LangGraph's own format, taken a short way where that gives the same result: data that is nothing but JSON needs neither the walk for
 * special objects when it is written nor, when it is read, the one that brings them back. A serializer that the user chose is always asked.
 */
export function shortcut(
  serde: SerializerProtocol,
  own: boolean,
): { dump(value: unknown): Promise<Typed> | Typed; load(typed: Typed): Promise<unknown> | unknown } {
  return {
    dump(value) {
      if (own && isJson(value, 0)) return { type: "json", data: Buffer.from(JSON.stringify(value), "utf8") };
      return serde.dumpsTyped(value).then(([type, data]) => ({ type, data }));
    },
    load({ type, data }) {
      if (own && type === "json") {
        const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
        if (!text.includes('"lc"')) return text.includes('"__proto__"') ? JSON.parse(text, withoutPrototypes) : JSON.parse(text);
      }
      return serde.loadsTyped(type, data);
    },
  };
}

const DEPTH_MAX = 200;

/** Whether `JSON.stringify` writes just what LangGraph's serializer would. */
function isJson(value: unknown, depth: number): boolean {
  if (value === null) return true;
  switch (typeof value) {
    case "string":
    case "boolean":
    case "number":
      return true;
    case "object":
      break;
    default:
      return false;
  }
  if (depth > DEPTH_MAX) return false;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isJson(value[i], depth + 1)) return false;
    return true;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const key in value) {
    if (key === "lc" || key === "lg_name" || key === "toJSON" || !isJson((value as Record<string, unknown>)[key], depth + 1)) return false;
  }
  return true;
}

/** Nothing that is read may change what objects inherit. */
function withoutPrototypes(this: unknown, key: string, value: unknown): unknown {
  return key === "__proto__" ? undefined : value;
}
