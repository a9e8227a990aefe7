import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";

/** Returns why a text cannot be stored on every engine, or `undefined` if it can. PostgreSQL has no NUL, UTF-8 no lone surrogates. */
export function unstorable(text: string): string | undefined {
  if (text.includes("\u0000")) return "contains a NUL character; remove it";
  if (!text.isWellFormed()) return "contains half of a surrogate pair, which is not valid Unicode; remove it";
  return undefined;
}

/**
 * Returns whether a text has no visible character: only white space, control characters and invisible ones such as zero-width spaces.
 * Takes one pass over the text.
 */
export function isBlank(text: string): boolean {
  return !/[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);
}

export interface JsonLimits {
  readonly depth?: number;
  /** Fields, list items and containers together. */
  readonly values?: number;
}

/**
 * Parses JSON text from outside. Deep nesting and hundreds of thousands of fields make parsing and validation take seconds,
 * so one linear scan of the text refuses them first, before anything is built. Raises `invalid_input` in all cases.
 */
export function parseJson(text: string, limits: JsonLimits = {}): unknown {
  assertJsonSize(text, limits);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CairnError("invalid_input", `not valid JSON: ${(cause as Error).message.slice(0, 200)}.`, { cause });
  }
}

/** Raises `invalid_input` when the text nests deeper or holds more values than allowed. Text that is no JSON may pass: the parser refuses it. */
export function assertJsonSize(
  text: string,
  { depth: maxDepth = LIMITS.jsonDepth, values: maxValues = LIMITS.jsonValues }: JsonLimits,
): void {
  let depth = 0;
  let values = 0;
  for (let index = 0; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case QUOTE:
        index = endOfString(text, index);
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        if (++depth > maxDepth) throw refusal(`nested more than ${maxDepth} levels deep. Flatten it.`);
        values++;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth--;
        break;
      case COMMA:
        values++;
        break;
    }
    if (values > maxValues) throw refusal(`made of more than ${maxValues} fields and items. Send less at a time.`);
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Returns the index of the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  let index = start + 1;
  for (let code = text.charCodeAt(index); index < text.length && code !== QUOTE; code = text.charCodeAt(index))
    index += code === BACKSLASH ? 2 : 1;
  return index;
}

function refusal(problem: string): CairnError {
  return new CairnError("invalid_input", problem);
}
