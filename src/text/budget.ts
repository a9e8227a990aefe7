/** A quick estimate of tokens, a little on the high side: about four characters of English, fewer of code and other scripts. */
export function estimateTokens(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x2ff) wide++;
  return Math.ceil((text.length - wide) / 3.5 + wide / 1.5);
}

/** The text, cut at a word to about `tokens`, with a note in place of the rest. */
export function cutText(text: string, tokens: number, note: string): { text: string; cut: boolean } {
  if (estimateTokens(text) <= tokens) return { text, cut: false };
  let end = Math.min(text.length, Math.max(0, Math.floor(tokens * 3.5)));
  while (end > 0 && estimateTokens(text.slice(0, end)) > tokens) end = Math.floor(end * 0.8);
  const space = text.lastIndexOf(" ", end);
  const at = space > end * 0.7 ? space : end;
  // Half of a surrogate pair would not be valid text.
  const whole = /[\ud800-\udbff]/.test(text[at - 1] ?? "") ? at - 1 : at;
  return { text: `${text.slice(0, whole).trimEnd()} … [${note}]`, cut: true };
}

/** As many items from the front as fit, at least one. */
export function withinBudget<Item>(items: readonly Item[], tokens: number, costOf: (item: Item) => number): Item[] {
  let spent = 0;
  const fitting: Item[] = [];
  for (const item of items) {
    spent += costOf(item);
    if (spent > tokens && fitting.length > 0) break;
    fitting.push(item);
  }
  return fitting;
}
