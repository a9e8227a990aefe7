import { field, type Grammar, nodes } from "../grammar.ts";

export const python: Grammar = {
  definitions: {
    function_definition: { kind: "function" },
    class_definition: { kind: "class" },
    type_alias_statement: { kind: "type", names: (node) => field(node, "left") },
    assignment: {
      kind: "variable",
      names: (node) =>
        field(node, "left").flatMap((left) =>
          left.type === "identifier"
            ? [left]
            : nodes(left.namedChildren).filter((child) => child.type === "identifier" && left.type === "pattern_list"),
        ),
      outer: true,
    },
  },
  identifiers: ["identifier"],
  leads: ["comment", "decorator"],
  wrappers: ["decorated_definition", "expression_statement"],
};
