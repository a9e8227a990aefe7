import type { Grammar } from "../grammar.ts";
import { c, cpp } from "./c.ts";
import { elixir, haskell, lua, zig } from "./functional-and-small.ts";
import { go } from "./go.ts";
import { javascript, typescript } from "./javascript.ts";
import { csharp, java } from "./jvm-and-net.ts";
import { kotlin, swift } from "./kotlin-and-swift.ts";
import { css, html, json, yaml } from "./markup.ts";
import { python } from "./python.ts";
import { rust } from "./rust.ts";
import { bash, php, ruby, sql } from "./scripts.ts";

/** Every language that is cut by its syntax with a tree-sitter grammar. Markdown needs none. */
export const GRAMMARS = {
  typescript,
  tsx: typescript,
  javascript,
  python,
  go,
  rust,
  java,
  c,
  cpp,
  csharp,
  ruby,
  php,
  bash,
  sql,
  html,
  vue: html,
  svelte: html,
  css,
  json,
  yaml,
  kotlin,
  swift,
  elixir,
  lua,
  haskell,
  zig,
} as const satisfies Record<string, Grammar>;

export type GrammarName = keyof typeof GRAMMARS;

export function isGrammarName(language: string): language is GrammarName {
  return Object.hasOwn(GRAMMARS, language);
}
