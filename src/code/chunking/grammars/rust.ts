import { field, type Grammar, within } from "../grammar.ts";

export const rust: Grammar = {
  definitions: {
    function_item: { kind: "function" },
    function_signature_item: { kind: "function" },
    struct_item: { kind: "struct" },
    union_item: { kind: "struct" },
    enum_item: { kind: "enum" },
    enum_variant: { kind: "field" },
    field_declaration: { kind: "field" },
    trait_item: { kind: "interface" },
    type_item: { kind: "type" },
    associated_type: { kind: "type" },
    const_item: { kind: "constant", outer: true },
    static_item: { kind: "constant", outer: true },
    mod_item: { kind: "module" },
    macro_definition: { kind: "macro" },
    // An implementation defines no name of its own; it gives its methods their parent.
    impl_item: {
      kind: "implementation",
      names: () => [],
      label: (node) => field(node, "type").flatMap((type) => within(type, ["type_identifier"]))[0]?.text,
    },
  },
  identifiers: ["identifier", "field_identifier", "type_identifier", "shorthand_field_identifier"],
  leads: ["line_comment", "block_comment", "attribute_item"],
  open: ["mod_item"],
};
