import type { CodeKind } from "../../../model/code-chunk.ts";
import { type DefinitionRule, field, type Grammar, nodes } from "../grammar.ts";
import type { SyntaxNode } from "../syntax.ts";

const FUNCTIONS = new Set(["function_expression", "function", "arrow_function", "generator_function"]);

const variable: DefinitionRule = {
  kind: (node) => {
    const value = kindOfValue(node.childForFieldName("value"));
    if (value) return value;
    return node.parent?.type === "lexical_declaration" && node.parent.text.startsWith("const") ? "constant" : "variable";
  },
  names: (node) => field(node, "name").flatMap(boundNames),
  outer: "values",
};

/** `exports.load = function () {}` and `Cart.prototype.add = …` define; other assignments only change a value. */
const assignment: DefinitionRule = {
  kind: (node) => (node.childForFieldName("left")?.type === "member_expression" ? kindOfValue(node.childForFieldName("right")) : undefined),
  names: (node) => field(node, "left").flatMap((left) => field(left, "property")),
};

const pair: DefinitionRule = {
  kind: (node) => (kindOfValue(node.childForFieldName("value")) === "function" ? "method" : undefined),
  names: (node) => field(node, "key").filter((key) => key.type === "property_identifier"),
};

/** What both languages have in common. */
const DEFINITIONS: Record<string, DefinitionRule> = {
  function_declaration: { kind: "function" },
  generator_function_declaration: { kind: "function" },
  class_declaration: { kind: "class" },
  method_definition: { kind: "method", names: plainName, label: (node) => node.childForFieldName("name")?.text },
  variable_declarator: variable,
  assignment_expression: assignment,
  pair,
};

const IDENTIFIERS = [
  "identifier",
  "property_identifier",
  "private_property_identifier",
  "shorthand_property_identifier",
  "shorthand_property_identifier_pattern",
];
const WRAPPERS = ["export_statement", "lexical_declaration", "variable_declaration", "expression_statement"];

export const javascript: Grammar = {
  definitions: { ...DEFINITIONS, field_definition: { kind: "field", names: (node) => field(node, "property") } },
  identifiers: IDENTIFIERS,
  leads: ["comment", "decorator"],
  wrappers: WRAPPERS,
};

export const typescript: Grammar = {
  identifiers: [...IDENTIFIERS, "type_identifier"],
  leads: ["comment", "decorator"],
  wrappers: [...WRAPPERS, "ambient_declaration"],
  definitions: {
    ...DEFINITIONS,
    function_signature: { kind: "function" },
    abstract_class_declaration: { kind: "class" },
    interface_declaration: { kind: "interface" },
    type_alias_declaration: { kind: "type" },
    enum_declaration: { kind: "enum" },
    enum_body: { kind: "field", names: (node) => nodes(node.childrenForFieldName("name")), label: () => undefined, flat: true },
    enum_assignment: { kind: "field" },
    internal_module: { kind: "module" },
    module: { kind: "module", names: (node) => field(node, "name").filter((name) => name.type !== "string") },
    method_signature: { kind: "method" },
    abstract_method_signature: { kind: "method" },
    public_field_definition: { kind: (node) => (kindOfValue(node.childForFieldName("value")) === "function" ? "method" : "field") },
    property_signature: { kind: "field", outer: true },
  },
  open: ["internal_module", "module"],
};

/** `[Symbol.iterator]() {}` defines no name. */
function plainName(node: SyntaxNode): SyntaxNode[] {
  return field(node, "name").filter((name) => name.type !== "computed_property_name");
}

function kindOfValue(value: SyntaxNode | null): CodeKind | undefined {
  if (!value) return undefined;
  if (FUNCTIONS.has(value.type)) return "function";
  return value.type === "class" ? "class" : undefined;
}

/** The names that `a`, `{ a, b: c }` or `[a]` bind. */
function boundNames(pattern: SyntaxNode): SyntaxNode[] {
  if (pattern.type === "identifier" || pattern.type === "shorthand_property_identifier_pattern") return [pattern];
  if (pattern.type === "pair_pattern") return field(pattern, "value").flatMap(boundNames);
  if (pattern.type === "object_assignment_pattern" || pattern.type === "assignment_pattern")
    return field(pattern, "left").flatMap(boundNames);
  return pattern.type.endsWith("_pattern") ? nodes(pattern.namedChildren).flatMap(boundNames) : [];
}
