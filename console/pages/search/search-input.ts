import { param } from "../../state/route.ts";

/** Hits that a search returns here. */
export const TOP_K = 20;

type Mode = "hybrid" | "semantic" | "keyword";

/** Returns the ranking that the address names. */
export function searchMode(): { readonly mode?: Mode } {
  const mode = param("mode");
  return mode === "semantic" || mode === "keyword" ? { mode } : {};
}
