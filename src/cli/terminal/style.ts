/** Colours of terminal output; plain text if colours are off. */
export interface Style {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly cyan: (text: string) => string;
}

/** Returns colours as NO_COLOR and FORCE_COLOR request; without them, for terminals only. */
export function styleFor(stream: { readonly isTTY?: boolean }, env: Readonly<Record<string, string | undefined>>): Style {
  const forced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "" && env.FORCE_COLOR !== "0";
  const on = env.NO_COLOR ? false : forced || (stream.isTTY === true && env.TERM !== "dumb");
  const wrap = (open: number, close: number) => (text: string) => (on ? `\u001B[${open}m${text}\u001B[${close}m` : text);
  return { bold: wrap(1, 22), dim: wrap(2, 22), red: wrap(31, 39), green: wrap(32, 39), cyan: wrap(36, 39) };
}

/** Escapes control characters: stored text could otherwise control the terminal. Line breaks and tabs stay. */
export function escapeControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to escape.
  return text.replace(/\r(?=\n|$)/g, "").replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g, "\uFFFD");
}
