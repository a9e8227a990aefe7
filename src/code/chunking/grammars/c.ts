import { type DefinitionRule, field, type Grammar, nodes } from "../grammar.ts";
import type { SyntaxNode } from "../syntax.ts";

const NAMES = new Set(["identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name", "operator_cast"]);

/** The name at the end of `*(*name)(int)[3]`, and the scopes of `A::B::name`. */
function declared(declarator: SyntaxNode): { name: SyntaxNode; scopes: string[] } | undefined {
  const scopes: string[] = [];
  let node: SyntaxNode | null | undefined = declarator;
  for (let depth = 0; node && depth < 32; depth++) {
    if (NAMES.has(node.type)) return { name: node, scopes };
    if (node.type === "qualified_identifier") {
      const scope = node.childForFieldName("scope");
      if (scope) scopes.push((scope.childForFieldName("name") ?? scope).text);
      node = node.childForFieldName("name");
    } else if (node.type === "template_function" || node.type === "template_method") node = node.childForFieldName("name");
    else
      node =
        node.childForFieldName("declarator") ??
        nodes(node.namedChildren).find((child) => child.type.endsWith("declarator") || NAMES.has(child.type));
  }
  return undefined;
}

function declaredNames(node: SyntaxNode): SyntaxNode[] {
  return nodes(node.childrenForFieldName("declarator")).flatMap((declarator) => declared(declarator)?.name ?? []);
}

function scopesOf(node: SyntaxNode): readonly string[] {
  return field(node, "declarator").flatMap((declarator) => declared(declarator)?.scopes ?? []);
}

function isFunction(node: SyntaxNode): boolean {
  const declarator = node.childForFieldName("declarator");
  return declarator?.type === "function_declarator" || declarator?.childForFieldName("declarator")?.type === "function_declarator";
}

/** `struct point` names a type that exists; only one with a body defines it. */
const withBody = (kind: "struct" | "class" | "enum"): DefinitionRule => ({
  kind: (node) => (node.childForFieldName("body") ? kind : undefined),
});

const DEFINITIONS: Record<string, DefinitionRule> = {
  function_definition: { kind: (node) => (scopesOf(node).length > 0 ? "method" : "function"), names: declaredNames, within: scopesOf },
  declaration: {
    kind: (node) => (isFunction(node) ? "function" : "variable"),
    names: declaredNames,
    within: scopesOf,
    outer: true,
    flat: true,
  },
  field_declaration: { kind: (node) => (isFunction(node) ? "method" : "field"), names: declaredNames, flat: true },
  struct_specifier: withBody("struct"),
  union_specifier: withBody("struct"),
  enum_specifier: withBody("enum"),
  enumerator: { kind: "field" },
  type_definition: { kind: "type", names: declaredNames, flat: true },
  preproc_def: { kind: "macro" },
  preproc_function_def: { kind: "macro" },
};

export const c: Grammar = {
  definitions: DEFINITIONS,
  identifiers: ["identifier", "field_identifier", "type_identifier", "statement_identifier"],
  leads: ["comment"],
  // Include guards and `extern "C"` surround the whole file.
  open: ["preproc_ifdef", "preproc_if", "linkage_specification"],
};

export const cpp: Grammar = {
  ...c,
  definitions: {
    ...DEFINITIONS,
    class_specifier: withBody("class"),
    namespace_definition: { kind: "module" },
    alias_declaration: { kind: "type" },
    concept_definition: { kind: "type" },
  },
  identifiers: [...c.identifiers, "namespace_identifier"],
  wrappers: ["template_declaration"],
  open: [...(c.open ?? []), "namespace_definition"],
};
