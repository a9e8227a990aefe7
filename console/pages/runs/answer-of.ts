/** Returns what is sent for a typed answer: JSON where the text is an object, a list, a number or a truth value, else the text. */
export function answerOf(text: string): { readonly answer: string } | { readonly answer_json: string } {
  const trimmed = text.trim();
  try {
    const value: unknown = JSON.parse(trimmed);
    return typeof value === "string" ? { answer: value } : { answer_json: trimmed };
  } catch {
    return { answer: trimmed };
  }
}
