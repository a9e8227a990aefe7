/** A place in a stack trace, as it was written. */
export interface StackFrame {
  /** With `/`. May be absolute, or a path on another machine. */
  readonly path: string;
  readonly line?: number | undefined;
  /** The function, without its class or module. */
  readonly symbol?: string | undefined;
}

/** The parts of a long question, such as an issue with a stack trace. */
export interface SplitQuestion {
  /** The first line. */
  readonly title: string;
  /** Sentences after the title, without code, logs and stack frames. */
  readonly prose: string;
  /** Names written as code, in the order of their first use. */
  readonly identifiers: readonly string[];
  readonly paths: readonly string[];
  /** Innermost first, as far as the order of the trace is known. */
  readonly frames: readonly StackFrame[];
  /** Messages such as `TypeError: x is not a function`. */
  readonly errors: readonly string[];
}

const TITLE_CHARS = 300;
const PROSE_CHARS = 2_000;
/** Characters of one line that are read. A longer line is data. */
const LINE_CHARS = 500;
const MAX_IDENTIFIERS = 32;
const MAX_PATHS = 16;
const MAX_FRAMES = 32;
/** Frames that are read to choose from: a deep recursion repeats itself. */
const READ_FRAMES = 1_000;
const MAX_ERRORS = 4;

/** Splits a question in one pass over its lines. Every pattern reads at most `LINE_CHARS` characters, so the time is linear. */
export function splitQuestion(question: string): SplitQuestion {
  const identifiers = new Set<string>();
  const paths = new Set<string>();
  const frames: StackFrame[] = [];
  const errors: string[] = [];
  const prose: string[] = [];
  let title: string | undefined;
  let inFence = false;
  let proseChars = 0;
  let pythonTrace = false;
  for (const whole of question.split("\n")) {
    const line = whole.slice(0, LINE_CHARS).trim();
    if (/^(?:```|~~~)/.test(line)) {
      inFence = !inFence;
      continue;
    }
    if (line === "") continue;
    const frame = readFrame(line);
    if (frame) {
      if (frames.length < READ_FRAMES) frames.push(frame);
      continue;
    }
    if (OTHER_FRAME.test(line)) continue;
    if (/^Traceback \(most recent call last\)/.test(line)) {
      pythonTrace = true;
      continue;
    }
    const error = errorPattern().exec(line)?.[0];
    if (error !== undefined && errors.length < MAX_ERRORS) errors.push(error.slice(0, TITLE_CHARS));
    for (const path of pathsOf(line)) if (paths.size < MAX_PATHS) paths.add(path);
    if (!inFence || identifiers.size < MAX_IDENTIFIERS / 2)
      for (const name of namesOf(line)) if (identifiers.size < MAX_IDENTIFIERS) identifiers.add(name);
    if (title === undefined) title = line.replace(/^#{1,6}\s+|^(?:title|subject):\s*/i, "").slice(0, TITLE_CHARS);
    else if (!inFence && proseChars < PROSE_CHARS && isProse(line)) {
      prose.push(line.slice(0, PROSE_CHARS - proseChars));
      proseChars += line.length + 1;
    }
  }
  return {
    title: title ?? errors[0] ?? "",
    prose: prose.join("\n"),
    identifiers: [...identifiers],
    paths: [...paths],
    // Python prints the innermost call last.
    frames: selectFrames(pythonTrace ? frames.toReversed() : frames),
    errors,
  };
}

/** Folders of installed packages and of runtimes. */
const DEPENDENCY = /(?:^|\/)(?:node_modules|site-packages|dist-packages|vendor|gems|registry\/src|rustc|lib\/python[\d.]+)\/|^node:/;

/** Returns the innermost frames. Where there are too many, those of the project's own code come before those of its dependencies. */
function selectFrames(frames: readonly StackFrame[]): StackFrame[] {
  if (frames.length <= MAX_FRAMES) return [...frames];
  const seen = new Set<string>();
  const distinct = frames.filter(({ path, line }) => !seen.has(`${path}:${line}`) && seen.add(`${path}:${line}`));
  const own = distinct.filter(({ path }) => !DEPENDENCY.test(path));
  const chosen = new Set([...own, ...distinct].slice(0, MAX_FRAMES));
  return distinct.filter((frame) => chosen.has(frame));
}

// Unicode classes take long to parse, so each pattern is created when a question needs it.

/** Frames without a file of the project, such as those of a runtime. */
const OTHER_FRAME = /^at [^()]*(?:\([^()]*\)|:\d+)$/;
const errorPattern = () =>
  /(?:\b[\p{L}_][\p{L}\p{N}_.]{0,80}(?:Error|Exception|Panic|Fault|Warning)\b(?:\s?\[[^\]]{1,40}\])?: .{3,300}|\b(?:panicked at|fatal error:|fatal:|error(?:\[\w{1,20}\])?:|Error:) ?.{3,300})/u;

/** Returns the place of a stack frame in the styles of JavaScript, Java, .NET, Python, Ruby, Go and Rust. */
function readFrame(line: string): StackFrame | undefined {
  const python = /^File "([^"]+)", line (\d+)(?:, in (\S+))?/.exec(line);
  if (python) return toFrame(python[1]!, python[2], python[3]);
  const dotnet = /^at (\S+)\(.*\) in (.+):line (\d+)$/.exec(line);
  if (dotnet) return toFrame(dotnet[2]!, dotnet[3], dotnet[1]);
  const called = /^at (?:async )?(?:new )?([^()\s]+)(?: \[as [^\]]+\])? ?\(([^()]+?):(\d+)(?::\d+)?\)/.exec(line);
  if (called) return toFrame(javaPath(called[1]!, called[2]!), called[3], called[1]);
  const bare =
    /^(?:at )?(?:async )?((?:[A-Za-z]:)?[^\s:()"'`]+\.[A-Za-z]\w{0,9}):(\d+)(?::\d+)?(?::in [`'"]?([^'"`]+)[`'"]?|\s\+0x[0-9a-f]+|:)?$/.exec(
      line,
    );
  return bare ? toFrame(bare[1]!, bare[2], bare[3]) : undefined;
}

function toFrame(path: string, line: string | undefined, symbol: string | undefined): StackFrame {
  const name = symbol?.split(/[.#:\\/$]+/).findLast((part) => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(part));
  const isName = name !== undefined && !/^(?:anonymous|lambda|module|main|Object|block|in)$/.test(name);
  return { path: cleanPath(path), ...(line !== undefined && { line: Number(line) }), ...(isName && { symbol: name }) };
}

/** A Java frame names only the file; its folders are in the class: `com.shop.Cart.add(Cart.java:7)` is com/shop/Cart.java. */
function javaPath(symbol: string, file: string): string {
  if (/[\\/]/.test(file) || !/\.(?:java|kt|scala|groovy)$/.test(file)) return file;
  const folders = symbol.split(".").slice(0, -2);
  return [...folders, file].join("/");
}

function cleanPath(path: string): string {
  return path
    .replace(/^(?:file|webpack(?:-internal)?|https?):\/\/\/?/, "/")
    .replaceAll("\\", "/")
    .replace(/[?#].*$/, "")
    .replace(/^(?:\.\/)+/, "");
}

/** A path with a folder, or a file name with an extension of source code. */
const pathPattern = () =>
  /(?<![\p{L}\p{N}_.@-])(?:[\p{L}\p{N}_.@-]+[\\/])+[\p{L}\p{N}_.@-]+\.[A-Za-z]\w{0,9}|\b[\p{L}\p{N}_-]+\.(?:[cm]?[jt]sx?|py|rs|go|java|kts?|rb|php|cs|cc|cpp|c|hh?|hpp|swift|exs?|lua|hs|zig|sql|vue|scala)\b/gu;

function pathsOf(line: string): string[] {
  return [...line.matchAll(pathPattern())]
    .filter(({ index }) => !/:\/\/\S*$/.test(line.slice(Math.max(0, index - 100), index)))
    .map(([path]) => cleanPath(path));
}

/** Names that no ordinary word resembles, and everything in backticks that is one name. */
const namePattern = () =>
  /`([\p{L}_$][\p{L}\p{N}_$.:#]{1,80})(?:\(\))?`|[\p{L}_$][\p{L}\p{N}_$]*(?:(?:\.|::|#)[\p{L}_$][\p{L}\p{N}_$]*)*/gu;
const codeLikePattern = () => /\p{Ll}\p{Lu}|[\p{L}\p{N}]_[\p{L}\p{N}]|^__?\p{L}|[\p{L}\p{N}]::\p{L}|\p{Lu}{2}\p{Ll}/u;

function namesOf(line: string): string[] {
  const codeLike = codeLikePattern();
  const withoutPaths = line.replace(pathPattern(), " ");
  return [...withoutPaths.matchAll(namePattern())].flatMap(([whole, quoted]) => {
    if (quoted !== undefined) return [quoted];
    const name = whole.replaceAll("`", "");
    return codeLike.test(name) && name.length <= 100 ? [name] : [];
  });
}

/** Sentences have spaces and few signs; log lines, tables and code do not. */
function isProse(line: string): boolean {
  const signs = line.match(/[{}()[\];=<>|+*/\\]/g)?.length ?? 0;
  return /\p{L}{2}\s+\p{L}{2}/u.test(line) && signs <= line.length / 12;
}
