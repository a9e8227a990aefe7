import { field, type Grammar, nodes, within } from "../grammar.ts";

export const go: Grammar = {
  definitions: {
    function_declaration: { kind: "function" },
    method_declaration: {
      kind: "method",
      within: (node) =>
        field(node, "receiver")
          .flatMap((receiver) => within(receiver, ["type_identifier"]).slice(0, 1))
          .map((type) => type.text),
    },
    type_spec: {
      kind: (node) => {
        const type = node.childForFieldName("type")?.type;
        return type === "struct_type" ? "struct" : type === "interface_type" ? "interface" : "type";
      },
    },
    type_alias: { kind: "type" },
    const_spec: { kind: "constant", names: (node) => nodes(node.childrenForFieldName("name")), outer: true },
    var_spec: { kind: "variable", names: (node) => nodes(node.childrenForFieldName("name")), outer: true },
    field_declaration: { kind: "field", names: (node) => nodes(node.childrenForFieldName("name")) },
    method_elem: { kind: "method" },
  },
  identifiers: ["identifier", "field_identifier", "type_identifier", "package_identifier", "label_name"],
  leads: ["comment"],
  wrappers: ["type_declaration", "const_declaration", "var_declaration"],
};
