import { field, type Grammar, nodes, within } from "../grammar.ts";

export const ruby: Grammar = {
  definitions: {
    module: { kind: "module" },
    class: { kind: "class" },
    singleton_class: { kind: "class", names: () => [], label: (node) => node.childForFieldName("value")?.text },
    method: { kind: "function" },
    singleton_method: { kind: "function" },
    alias: { kind: "method" },
    assignment: { kind: "constant", names: (node) => field(node, "left").filter((left) => left.type === "constant"), outer: true },
  },
  identifiers: ["identifier", "constant", "instance_variable", "class_variable", "global_variable"],
  leads: ["comment"],
  open: ["module"],
};

export const php: Grammar = {
  definitions: {
    class_declaration: { kind: "class" },
    interface_declaration: { kind: "interface" },
    trait_declaration: { kind: "class" },
    enum_declaration: { kind: "enum" },
    enum_case: { kind: "field" },
    function_definition: { kind: "function" },
    method_declaration: { kind: "method" },
    const_element: {
      kind: "constant",
      names: (node) =>
        nodes(node.namedChildren)
          .filter((child) => child.type === "name")
          .slice(0, 1),
    },
    property_element: { kind: "field", names: (node) => field(node, "name").flatMap((name) => within(name, ["name"])) },
    property_promotion_parameter: { kind: "field", names: (node) => field(node, "name").flatMap((name) => within(name, ["name"])) },
    namespace_definition: { kind: "module", names: (node) => field(node, "name") },
  },
  identifiers: ["name"],
  leads: ["comment"],
  wrappers: ["const_declaration", "property_declaration"],
};

export const bash: Grammar = {
  definitions: {
    function_definition: { kind: "function" },
    variable_assignment: { kind: "variable", outer: true, flat: true },
  },
  // The command a line runs may be a function of the script.
  identifiers: ["command_name", "variable_name"],
  isName: (text) => /^[A-Za-z_][\w.:-]*$/.test(text),
  leads: ["comment"],
  wrappers: ["declaration_command"],
};

const reference = (node: Parameters<typeof field>[0]) =>
  nodes(node.namedChildren)
    .filter((child) => child.type === "object_reference")
    .slice(0, 1)
    .flatMap((child) => field(child, "name"));

export const sql: Grammar = {
  definitions: {
    create_table: { kind: "table", names: reference },
    create_view: { kind: "view", names: reference },
    create_materialized_view: { kind: "view", names: reference },
    create_function: { kind: "function", names: reference },
    create_trigger: { kind: "trigger", names: reference },
    create_type: { kind: "type", names: reference },
    create_sequence: { kind: "type", names: reference },
    create_schema: { kind: "module", names: (node) => within(node, ["identifier"], 2).slice(0, 1) },
    create_index: { kind: "index", names: (node) => field(node, "column") },
    column_definition: { kind: "field" },
  },
  identifiers: ["identifier"],
  leads: ["comment", "marginalia"],
  wrappers: ["statement"],
};
