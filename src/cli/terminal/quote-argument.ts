/** Quotes an argument so that a shell reads it as one word. */
export function quoteArgument(argument: string): string {
  return /^[\w./:=@-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}
