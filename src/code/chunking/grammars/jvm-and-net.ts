import { childOfType, field, type Grammar, nodes, within } from "../grammar.ts";
import type { SyntaxNode } from "../syntax.ts";

export const java: Grammar = {
  definitions: {
    class_declaration: { kind: "class" },
    record_declaration: { kind: "class" },
    interface_declaration: { kind: "interface" },
    annotation_type_declaration: { kind: "interface" },
    enum_declaration: { kind: "enum" },
    enum_constant: { kind: "field" },
    method_declaration: { kind: "method" },
    constructor_declaration: { kind: "method" },
    compact_constructor_declaration: { kind: "method" },
    annotation_type_element_declaration: { kind: "method" },
    field_declaration: { kind: "field", names: declarators },
    constant_declaration: { kind: "field", names: declarators },
    module_declaration: { kind: "module" },
  },
  identifiers: ["identifier", "type_identifier"],
  leads: ["line_comment", "block_comment"],
};

function declarators(node: SyntaxNode): SyntaxNode[] {
  return nodes(node.childrenForFieldName("declarator")).flatMap((declarator) => field(declarator, "name"));
}

export const csharp: Grammar = {
  definitions: {
    class_declaration: { kind: "class" },
    record_declaration: { kind: "class" },
    struct_declaration: { kind: "struct" },
    interface_declaration: { kind: "interface" },
    enum_declaration: { kind: "enum" },
    enum_member_declaration: { kind: "field" },
    delegate_declaration: { kind: "type" },
    method_declaration: { kind: "method" },
    constructor_declaration: { kind: "method" },
    destructor_declaration: { kind: "method" },
    operator_declaration: {
      kind: "method",
      names: () => [],
      label: (node) => `operator ${node.childForFieldName("operator")?.text ?? ""}`,
    },
    property_declaration: { kind: "field" },
    event_declaration: { kind: "field" },
    field_declaration: { kind: "field", names: variables },
    event_field_declaration: { kind: "field", names: variables },
    local_function_statement: { kind: "function" },
    namespace_declaration: { kind: "module" },
    file_scoped_namespace_declaration: { kind: "module" },
  },
  identifiers: ["identifier"],
  leads: ["comment"],
  open: ["namespace_declaration"],
};

function variables(node: SyntaxNode): SyntaxNode[] {
  const declaration = childOfType(node, "variable_declaration");
  return declaration
    ? nodes(declaration.namedChildren)
        .filter((child) => child.type === "variable_declarator")
        .flatMap((declarator) => within(declarator, ["identifier"]).slice(0, 1))
    : [];
}
