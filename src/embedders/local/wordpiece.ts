/** Turns text into BERT token ids as tokenizer.json describes them: uncased, accents stripped, greedy longest pieces. */
export interface WordPiece {
  /** Token ids without the [CLS] and [SEP] frame, at most `limit` of them. */
  pieces(text: string, limit: number): number[];
  /** Token ids framed by [CLS] and [SEP]; `maxLength` counts the frame. */
  encode(text: string, maxLength: number): number[];
  /** Returns the share of the words that the vocabulary has whole or in pieces of at least four characters, 0…1. */
  coverage(text: string): number;
}

/** The parts of a Hugging Face tokenizer.json that this tokenizer reads. */
export interface TokenizerFile {
  readonly normalizer: { readonly type: string; readonly lowercase: boolean };
  readonly model: {
    readonly type: string;
    readonly vocab: Readonly<Record<string, number>>;
    readonly unk_token: string;
    readonly continuing_subword_prefix: string;
    readonly max_input_chars_per_word: number;
  };
}

/** Characters of a piece that is as good as a word. */
const LONG_PIECE = 4;
/** Characters of a text whose words are looked up. */
const COVERAGE_CHARS = 2_000;
const CLS = 101;
const SEP = 102;
// Limit of cached words: words repeat, so the cache makes tokenizing several times faster. It is cleared when full.
const REMEMBERED_WORDS = 50_000;
/** Characters whose words are found at once: one call for all is faster than one for each, but most of a long text is not needed. */
const SLICE_CHARS = 2_000;
const SPACE = 32;
// Special tokens written in the text are read as such, as in the reference implementation.
const SPECIAL_TOKEN = /(\[(?:PAD|UNK|CLS|SEP|MASK)\])/;
const HAS_SPECIAL_TOKEN = /\[(?:PAD|UNK|CLS|SEP|MASK)\]/;
const WORD = /[^\s\p{P}$+<=>^`|~]+|[\p{P}$+<=>^`|~]/gu;
const ASCII_WORD = /[a-z0-9]+|[!-/:-@[-`{-~]/g;
const ASCII_ONLY = /^[\t\n\r -~]*$/;
const DROPPED = /[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu;
const CJK =
  /[\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{f900}-\u{faff}\u{2f800}-\u{2fa1f}]/gu;

export function wordPiece(file: TokenizerFile): WordPiece {
  const { vocab, unk_token, continuing_subword_prefix: prefix, max_input_chars_per_word: longestWord } = file.model;
  if (file.model.type !== "WordPiece" || file.normalizer.type !== "BertNormalizer" || !file.normalizer.lowercase)
    throw new Error("This tokenizer.json does not describe an uncased BERT WordPiece tokenizer");
  const starts = new Map<string, number>();
  const continuations = new Map<string, number>();
  const pieceLengths = new Map<number, number>();
  let longestPiece = 0;
  for (const [piece, id] of Object.entries(vocab)) {
    starts.set(piece, id);
    longestPiece = Math.max(longestPiece, piece.length);
    const continues = piece.startsWith(prefix);
    if (continues) continuations.set(piece.slice(prefix.length), id);
    pieceLengths.set(id, piece.length - (continues ? prefix.length : 0));
  }
  const unknown = starts.get(unk_token) ?? 100;
  const remembered = new Map<string, readonly number[]>();

  /** Splits a word greedily into its longest pieces from the left. A word with an unknown piece is unknown as a whole. */
  function split(word: string): readonly number[] {
    if (word.length > longestWord && [...word].length > longestWord) return [unknown];
    const ids: number[] = [];
    for (let start = 0; start < word.length; ) {
      const table = start === 0 ? starts : continuations;
      let end = Math.min(word.length, start + longestPiece);
      let id: number | undefined;
      for (; end > start; end--) {
        id = table.get(start === 0 && end === word.length ? word : word.slice(start, end));
        if (id !== undefined) break;
      }
      if (id === undefined) return [unknown];
      ids.push(id);
      start = end;
    }
    return ids;
  }

  function addWords(text: string, limit: number, out: number[]): void {
    const normal = normalize(text);
    const words = ASCII_ONLY.test(normal) ? ASCII_WORD : WORD;
    for (let from = 0, to = 0; from < normal.length && out.length < limit; from = to) {
      to = Math.min(normal.length, from + SLICE_CHARS);
      while (to < normal.length && normal.charCodeAt(to) > SPACE) to++; // a space never belongs to a word
      for (const word of normal.slice(from, to).match(words) ?? []) {
        if (out.length >= limit) break;
        let ids = remembered.get(word);
        if (ids === undefined) {
          ids = split(word);
          if (remembered.size >= REMEMBERED_WORDS) remembered.clear();
          remembered.set(word, ids);
        }
        for (let index = 0; index < ids.length; index++) out.push(ids[index]!);
      }
    }
  }

  function pieces(text: string, limit: number): number[] {
    // No token is shorter than a character, but spaces take none: a generous cut bounds the cost of huge inputs.
    const ids: number[] = [];
    if (!HAS_SPECIAL_TOKEN.test(text)) addWords(text, limit, ids);
    else
      for (const part of text.split(SPECIAL_TOKEN)) {
        const special = SPECIAL_TOKEN.test(part) ? starts.get(part) : undefined;
        if (special === undefined) addWords(part, limit, ids);
        else ids.push(special);
      }
    return ids.length > limit ? ids.slice(0, limit) : ids;
  }

  /** Returns the share of a word's characters that are in long pieces; 1 for a word of its own. */
  function coveredShare(word: string): number {
    const ids = split(normalize(word));
    if (ids.length === 1) return ids[0] === unknown ? 0 : 1;
    const long = ids.filter((id) => pieceLengths.get(id)! >= LONG_PIECE).reduce((sum, id) => sum + pieceLengths.get(id)!, 0);
    return Math.min(1, long / word.length);
  }

  function coverage(text: string): number {
    const shares = [...text.slice(0, COVERAGE_CHARS).matchAll(/[\p{L}\p{M}]+/gu)].map(([word]) => coveredShare(word));
    return shares.length === 0 ? 1 : shares.reduce((sum, share) => sum + share, 0) / shares.length;
  }

  return { pieces, coverage, encode: (text, maxLength) => [CLS, ...pieces(text, maxLength - 2), SEP] };
}

function normalize(text: string): string {
  if (ASCII_ONLY.test(text)) return text.toLowerCase();
  const decomposed = text
    .replace(DROPPED, "")
    .replace(CJK, " $& ")
    .normalize("NFD")
    .replace(/\p{Mn}/gu, "");
  // Letter by letter: a whole-string toLowerCase would turn a word-final Σ into ς, which the vocabulary was not built with.
  return decomposed.replace(/\p{L}/gu, (letter) => letter.toLowerCase());
}
