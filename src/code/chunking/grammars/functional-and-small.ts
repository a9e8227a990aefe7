import type { CodeKind } from "../../../model/code-chunk.ts";
import { childOfType, field, type Grammar, nodes, within } from "../grammar.ts";
import type { SyntaxNode } from "../syntax.ts";

/** Elixir has no definitions in its grammar: `def` and `defmodule` are calls like any other. */
const ELIXIR_KINDS: Readonly<Record<string, CodeKind>> = {
  ...{ defmodule: "module", defprotocol: "interface", defimpl: "implementation" },
  ...{ def: "function", defp: "function", defguard: "function", defguardp: "function", defdelegate: "function" },
  ...{ defmacro: "macro", defmacrop: "macro" },
};

export const elixir: Grammar = {
  definitions: { call: { kind: (node) => ELIXIR_KINDS[elixirTarget(node)], names: elixirNames } },
  identifiers: ["identifier", "alias"],
  leads: ["comment", "unary_operator"],
};

function elixirTarget(node: SyntaxNode): string {
  const target = node.childForFieldName("target");
  return target?.type === "identifier" ? target.text : "";
}

function elixirNames(node: SyntaxNode): SyntaxNode[] {
  let head = childOfType(node, "arguments")?.namedChildren[0] ?? null;
  if (head?.type === "binary_operator") head = head.childForFieldName("left"); // `when` and a guard
  if (head?.type === "call") head = head.childForFieldName("target");
  return nodes([head]).filter(({ type }) => type === "alias" || type === "identifier");
}

export const lua: Grammar = {
  definitions: {
    function_declaration: {
      kind: "function",
      names: (node) => field(node, "name").flatMap(luaName),
      within: (node) => field(node, "name").flatMap((name) => field(name, "table").map(({ text }) => text)),
    },
    assignment_statement: {
      kind: (node) => (childOfType(node, "expression_list")?.namedChildren[0]?.type === "function_definition" ? "function" : "variable"),
      names: (node) => nodes(childOfType(node, "variable_list")?.namedChildren ?? []).flatMap(luaName),
      outer: "values",
    },
  },
  identifiers: ["identifier"],
  leads: ["comment"],
  wrappers: ["variable_declaration"],
};

/** The name of `f`, `M.f` and `M:f`. */
function luaName(name: SyntaxNode): SyntaxNode[] {
  return name.type === "identifier"
    ? [name]
    : [...field(name, "field"), ...field(name, "method")].filter(({ type }) => type === "identifier");
}

export const haskell: Grammar = {
  definitions: {
    data_type: { kind: "type" },
    newtype: { kind: "type" },
    type_synomym: { kind: "type" }, // spelt so in the grammar
    class: { kind: "interface" },
    instance: {
      kind: "implementation",
      names: () => [],
      label: (node) => `${node.childForFieldName("name")?.text ?? ""} ${node.childForFieldName("patterns")?.text ?? ""}`.trim(),
    },
    signature: { kind: (node) => (node.parent?.type === "class_declarations" ? "function" : undefined) },
    function: { kind: "function", outer: "values" },
    bind: { kind: "variable", outer: true },
    field: { kind: "field", names: (node) => field(node, "name").flatMap((name) => within(name, ["variable"], 1)) },
    data_constructor: { kind: "field", names: (node) => within(node, ["constructor"], 3).slice(0, 1) },
  },
  identifiers: ["variable", "name", "constructor"],
  leads: ["comment", "haddock", "signature"],
  open: ["declarations"],
};

const ZIG_KINDS: Readonly<Record<string, CodeKind>> = {
  ...{ struct_declaration: "struct", union_declaration: "struct", opaque_declaration: "struct" },
  ...{ enum_declaration: "enum", error_set_declaration: "enum" },
};

export const zig: Grammar = {
  definitions: {
    variable_declaration: {
      kind: (node) => nodes(node.namedChildren).flatMap(({ type }) => ZIG_KINDS[type] ?? [])[0] ?? "constant",
      names: (node) => nodes([childOfType(node, "identifier") ?? null]),
      outer: true,
    },
    function_declaration: { kind: "function" },
    container_field: { kind: "field" },
    test_declaration: {
      kind: "function",
      names: () => [],
      label: (node) => `test ${childOfType(node, "string", "identifier")?.text ?? ""}`.trim(),
    },
  },
  identifiers: ["identifier"],
  leads: ["comment"],
};
