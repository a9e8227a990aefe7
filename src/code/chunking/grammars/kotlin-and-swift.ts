import type { CodeKind } from "../../../model/code-chunk.ts";
import { childOfType, field, type Grammar, nodes, within } from "../grammar.ts";
import type { SyntaxNode } from "../syntax.ts";

const firstOf =
  (...types: readonly string[]) =>
  (node: SyntaxNode): SyntaxNode[] =>
    nodes([childOfType(node, ...types) ?? null]);

export const kotlin: Grammar = {
  definitions: {
    class_declaration: { kind: kotlinKind, names: firstOf("type_identifier") },
    object_declaration: { kind: "class", names: firstOf("type_identifier") },
    companion_object: { kind: "class", names: firstOf("type_identifier"), flat: true },
    enum_entry: { kind: "field", names: firstOf("simple_identifier") },
    function_declaration: { kind: "function", names: firstOf("simple_identifier") },
    secondary_constructor: { kind: "method", names: () => [], label: () => "constructor" },
    property_declaration: {
      kind: "variable",
      names: (node) => firstOf("variable_declaration")(node).flatMap(firstOf("simple_identifier")),
      outer: true,
    },
    type_alias: { kind: "type", names: firstOf("type_identifier") },
  },
  identifiers: ["simple_identifier", "type_identifier"],
  leads: ["line_comment", "multiline_comment"],
};

/** The grammar has one node for classes, interfaces and enumerations. They differ in the keyword before the name. */
function kotlinKind(node: SyntaxNode): CodeKind {
  if (childOfType(node, "enum_class_body")) return "enum";
  const name = childOfType(node, "type_identifier");
  const before = node.text.slice(0, name ? name.startIndex - node.startIndex : 0).trimEnd();
  return before.endsWith("interface") ? "interface" : "class";
}

const SWIFT_KINDS: Readonly<Record<string, CodeKind>> = { struct: "struct", enum: "enum", extension: "implementation" };

export const swift: Grammar = {
  definitions: {
    class_declaration: {
      kind: (node) => SWIFT_KINDS[node.childForFieldName("declaration_kind")?.text ?? ""] ?? "class",
      // An extension defines no name of its own; it gives its methods their parent.
      names: (node) => field(node, "name").filter(({ type }) => type === "type_identifier"),
      label: (node) => field(node, "name").flatMap((name) => within(name, ["type_identifier"]))[0]?.text,
    },
    protocol_declaration: { kind: "interface" },
    function_declaration: { kind: "function", names: (node) => field(node, "name").slice(0, 1) },
    protocol_function_declaration: { kind: "function", names: (node) => field(node, "name").slice(0, 1) },
    init_declaration: { kind: "method", names: () => [], label: () => "init" },
    property_declaration: {
      kind: "variable",
      names: (node) => field(node, "name").flatMap((name) => within(name, ["simple_identifier"]).slice(0, 1)),
      outer: true,
    },
    enum_entry: { kind: "field", names: firstOf("simple_identifier") },
    typealias_declaration: { kind: "type", names: (node) => field(node, "name").slice(0, 1) },
  },
  identifiers: ["simple_identifier", "type_identifier"],
  leads: ["comment", "multiline_comment"],
};
