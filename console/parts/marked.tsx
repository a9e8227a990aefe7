import { markTerms } from "./mark-terms.ts";

/** A text with the terms of the query marked. */
export function Marked({ text, query }: { readonly text: string; readonly query: string }) {
  return <>{markTerms(text, query).map(({ text: part, isMatch }, index) => (isMatch ? <mark key={index}>{part}</mark> : part))}</>;
}
