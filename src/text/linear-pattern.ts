/** A pattern as data. `set` tests one code point; `many` repeats zero or more times. */
export type Pattern =
  | { readonly text: string }
  | { readonly set: (codePoint: number) => boolean }
  | { readonly many: Pattern }
  | { readonly sequence: readonly Pattern[] }
  | { readonly either: readonly Pattern[] };

/** Matches the empty text. */
export const EMPTY: Pattern = { text: "" };

/** Matches `pattern` or the empty text. */
export const optional = (pattern: Pattern): Pattern => ({ either: [EMPTY, pattern] });

type Instruction =
  | { readonly op: "take"; readonly accepts: (codePoint: number) => boolean }
  | { readonly op: "go"; to: number[] }
  | { readonly op: "end" };

/** A set of places in the program at which a match may be, with the sets that each code point leads to. */
interface State {
  readonly places: readonly number[];
  readonly accepts: boolean;
  readonly ascii: (State | undefined)[];
  readonly others: Map<number, State>;
}

/** Size of the remembered states in array entries, about 1 MB. Beyond it they are forgotten, which costs time but no correctness. */
const REMEMBERED_MAX = 100_000;
const ASCII = 128;

/**
 * Returns a test of whether a whole text fits the pattern. It follows all alternatives at once instead of trying one after
 * the other, so the time is at most the length of the pattern times the length of the text: no input makes it backtrack.
 * Sets of places are remembered as states of an automaton, which makes a step of a repeated walk one look-up.
 */
export function linearMatcher(pattern: Pattern): (text: string) => boolean {
  const program = compile(pattern);
  const states = new Map<string, State>();
  let start: State | undefined;
  let remembered = 0;

  function stateOf(entries: readonly number[]): State {
    const places = closure(program, entries);
    const key = places.join();
    let state = states.get(key);
    if (!state) {
      const accepts = places.some((place) => program[place]!.op === "end");
      state = { places, accepts, ascii: new Array(ASCII), others: new Map() };
      remembered += places.length + ASCII;
      if (remembered > REMEMBERED_MAX) {
        states.clear();
        start = undefined;
        remembered = 0;
      }
      states.set(key, state);
    }
    return state;
  }

  function step(state: State, codePoint: number): State {
    const entries: number[] = [];
    for (const place of state.places) {
      const instruction = program[place]!;
      if (instruction.op === "take" && instruction.accepts(codePoint)) entries.push(place + 1);
    }
    const next = stateOf(entries);
    if (codePoint < ASCII) state.ascii[codePoint] = next;
    else {
      state.others.set(codePoint, next);
      remembered++;
    }
    return next;
  }

  return (text) => {
    start ??= stateOf([0]);
    let state = start;
    for (let index = 0; index < text.length && state.places.length > 0; index++) {
      const codePoint = text.codePointAt(index)!;
      if (codePoint > 0xffff) index++;
      state = (codePoint < ASCII ? state.ascii[codePoint] : state.others.get(codePoint)) ?? step(state, codePoint);
    }
    return state.accepts;
  };
}

function compile(pattern: Pattern): Instruction[] {
  const program: Instruction[] = [];
  const branch = (...to: number[]) => {
    const instruction = { op: "go" as const, to };
    program.push(instruction);
    return instruction;
  };
  const add = (part: Pattern): void => {
    if ("text" in part)
      for (const char of part.text) {
        const wanted = char.codePointAt(0)!;
        program.push({ op: "take", accepts: (codePoint) => codePoint === wanted });
      }
    else if ("set" in part) program.push({ op: "take", accepts: part.set });
    else if ("sequence" in part) for (const one of part.sequence) add(one);
    else if ("many" in part) {
      const start = program.length;
      const loop = branch(start + 1);
      add(part.many);
      branch(start);
      loop.to.push(program.length);
    } else {
      const fork = branch();
      const ends: { to: number[] }[] = [];
      for (const one of part.either) {
        fork.to.push(program.length);
        add(one);
        ends.push(branch());
      }
      for (const end of ends) end.to.push(program.length);
    }
  };
  add(pattern);
  program.push({ op: "end" });
  return program;
}

/** Returns the places that wait for a code point or end the match, reached without taking any; sorted, each once. */
function closure(program: readonly Instruction[], entries: readonly number[]): number[] {
  const seen = new Set<number>();
  const places: number[] = [];
  const open = [...entries];
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    if (seen.has(place)) continue;
    seen.add(place);
    const instruction = program[place]!;
    if (instruction.op === "go") open.push(...instruction.to);
    else places.push(place);
  }
  return places.sort((a, b) => a - b);
}
