/** Returns whether a value only names the place of the real one: `$PASSWORD`, `${{ secrets.X }}`, `<password>`, `****`, `%s`, `[redacted:…]`. */
export function isReference(value: string): boolean {
  return /^[$%<{[]|\$\{|\$\(|\{\{|[*•]{3}|x{4}|\.{3}|…|%[sdv]$/i.test(value);
}

/** Returns whether a value stands for another one or for none, by its form or by its words. */
export function isPlaceholder(value: string): boolean {
  return (
    isReference(value) ||
    /^(?:user|pass|guest|pw)$|(?:password|passwd)$/i.test(value) ||
    /^(?:your|my|the|example|placeholder|changeme|change_me|dummy|sample|redacted|password|passwd|secret|undefined|null|none|true|false|string|process\.env)/i.test(
      value,
    )
  );
}

/** Returns whether a value is an expression of a program: `request.body.password`, `config::SECRET`, `a->b`. */
function isExpression(value: string): boolean {
  return (
    /^[A-Za-z_$][\w$]{0,60}Password$/.test(value) ||
    /^[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+[!;?]?$/.test(value) ||
    /^[@/.~]/.test(value)
  );
}

/** Returns whether a value looks like a password that a person chose: a digit or a sign among letters distinguishes it from words and names. */
export function looksLikePassword(value: string): boolean {
  if (isPlaceholder(value) || isExpression(value) || /^https?:\/\//.test(value)) return false;
  const letters = /[A-Za-z]/.test(value);
  return letters
    ? /\d|[!@#$%^&*?]/.test(value.slice(1)) && !/^[A-Za-z_]+\??$/.test(value)
    : /^\d{6,}$/.test(value) === false && /\d/.test(value);
}

/** Words of labels, hints and messages, which are quoted after the name of a password far more often than passwords with spaces. */
const LABEL =
  /\b(?:passwords?|passphrase|pass|must|enter|your|please|should|least|most|characters?|chars|digits?|letters?|required|invalid|forgot|forgotten|reset|change|changed|confirm|the|is|are|was|for|to|and|or|of|with|without|in|on|not|no|cannot|wrong|incorrect|use|same|match|new|old|again|login|log|sign|user|name|email|a|an|if|at|by|from|this|that|it|min|max|between|only)\b/i;

/** Returns whether a value with spaces looks like a passphrase: several plain words, or words with a digit or a sign, none of them of a label. */
export function looksLikePassphrase(value: string): boolean {
  if (isReference(value) || LABEL.test(value) || /^\s|\s$|\s\s/.test(value)) return false;
  if (/^[a-z]{3,12}(?: [a-z]{3,12}){3,7}$/.test(value)) return true;
  return /[A-Za-z]/.test(value) && /\d|[!@#$%^&*]/.test(value) && !/[.:,;?(){}<>=/]/.test(value);
}

/** Returns whether a value looks like a key that a machine made: long, letters and digits mixed, no letter much more frequent than others. */
export function looksRandom(value: string, minChars: number): boolean {
  if (value.length < minChars || isPlaceholder(value) || isExpression(value) || value.includes("://")) return false;
  const digits = value.replace(/\D/g, "").length;
  const turns = value.match(/[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]/g)?.length ?? 0;
  return digits >= 2 && turns >= 3 && entropyBits(value) >= (value.length >= 24 ? 3.3 : 2.9);
}

/** Returns whether a value is `user:password` in base64, as HTTP's Basic scheme, npm and Docker write it. */
export function isBasicCredential(value: string): boolean {
  if (!/^[A-Za-z0-9+/]{6,1000}={0,2}$/.test(value)) return false;
  return /^[\x21-\x7e]{1,200}:[\x20-\x7e]{1,400}$/.test(Buffer.from(value, "base64").toString("latin1"));
}

/** Returns Shannon's entropy per character. */
function entropyBits(value: string): number {
  const counts = new Map<string, number>();
  for (const char of value) counts.set(char, (counts.get(char) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / value.length) * Math.log2(count / value.length);
  return bits;
}
