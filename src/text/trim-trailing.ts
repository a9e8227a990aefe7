/** Removes these characters from the end of a text, except its first character. A regular expression would take quadratic time. */
export function trimTrailing(text: string, characters: string): string {
  let end = text.length;
  while (end > 1 && characters.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}
