import { childOfType, field, type Grammar, nodes, within } from "../grammar.ts";
import type { SyntaxNode } from "../syntax.ts";

const ATTRIBUTE_VALUES = ["attribute_value"];

function idOf(element: SyntaxNode): SyntaxNode[] {
  const tag = childOfType(element, "start_tag", "self_closing_tag");
  if (!tag) return [];
  const attribute = nodes(tag.namedChildren).find(
    (child) => child.type === "attribute" && childOfType(child, "attribute_name")?.text === "id",
  );
  return attribute ? within(attribute, ATTRIBUTE_VALUES) : [];
}

function elementLabel(element: SyntaxNode): string | undefined {
  const tag = childOfType(element, "start_tag", "self_closing_tag");
  const tagName = tag && childOfType(tag, "tag_name")?.text;
  const id = idOf(element)[0]?.text;
  return tagName && (id ? `${tagName}#${id}` : tagName);
}

const element = { kind: "element", names: idOf, label: elementLabel } as const;

export const html: Grammar = {
  definitions: { element, script_element: element, style_element: element },
  identifiers: [],
  leads: ["comment"],
};

export const css: Grammar = {
  definitions: {
    rule_set: {
      kind: "rule",
      names: (node) =>
        nodes(node.namedChildren)
          .slice(0, 1)
          .flatMap((selectors) => selectorNames(selectors)),
      label: (node) => oneLine(node.namedChildren[0]?.text),
    },
    media_statement: { kind: "rule", names: () => [], label: beforeBlock },
    supports_statement: { kind: "rule", names: () => [], label: beforeBlock },
    keyframes_statement: { kind: "rule", names: (node) => nodes([childOfType(node, "keyframes_name") ?? null]) },
    declaration: {
      kind: "variable",
      names: (node) =>
        nodes(node.namedChildren)
          .slice(0, 1)
          .filter((child) => child.type === "property_name" && child.text.startsWith("--")),
      flat: true,
    },
  },
  identifiers: ["plain_value"],
  isName: (text) => text.startsWith("--"),
  leads: ["comment"],
};

/** Class and id selectors name something; `:hover` does not. */
function selectorNames(selectors: SyntaxNode): SyntaxNode[] {
  return within(selectors, ["class_selector", "id_selector"])
    .flatMap((selector) => nodes(selector.namedChildren))
    .flatMap((child) => (child.type === "class_name" || child.type === "id_name" ? [child] : selectorNames(child)));
}

function beforeBlock(node: SyntaxNode): string | undefined {
  return oneLine(node.text.split("{", 1)[0]);
}

function oneLine(text: string | undefined): string | undefined {
  return text?.replace(/\s+/g, " ").trim();
}

/** Keys of data files deeper than this are content, not structure. */
const KEY_DEPTH = 3;

export const json: Grammar = {
  definitions: {
    pair: { kind: "key", names: (node) => field(node, "key").flatMap((key) => within(key, ["string_content"])), maxDepth: KEY_DEPTH },
  },
  identifiers: [],
  leads: ["comment"],
};

const yamlPair = {
  kind: "key",
  names: (node: SyntaxNode) =>
    field(node, "key").flatMap((key) => within(key, ["plain_scalar", "double_quote_scalar", "single_quote_scalar"])),
  maxDepth: KEY_DEPTH,
} as const;

export const yaml: Grammar = {
  definitions: { block_mapping_pair: yamlPair, flow_pair: yamlPair },
  identifiers: ["alias_name", "anchor_name"],
  leads: ["comment"],
};
