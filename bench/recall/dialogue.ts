import type { RecallSet } from "./sets.ts";

/** One piece of news: what the other person asks, the turn that answers, and the question asked of the records later. */
interface News {
  readonly ask: string;
  readonly tell: string;
  readonly question: string;
}

const NAMES = ["Amara", "Bruno", "Chloe", "Dmitri", "Elif", "Farid", "Greta", "Hiro"];
const VALUES: Readonly<Record<string, readonly string[]>> = {
  class: ["pottery", "salsa", "woodworking", "watercolour", "archery"],
  place: ["Lisbon", "Bergen", "Kyoto", "Oaxaca", "Tbilisi", "Halifax"],
  pet: ["a tabby kitten", "a greyhound", "two parakeets", "a rescue puppy"],
  dish: ["shakshuka", "mushroom risotto", "pierogi", "a lemon tart"],
  kin: ["sister", "uncle", "grandmother", "cousin"],
  day: ["last Tuesday", "on the 4th of March", "the weekend before last", "yesterday", "in early October"],
  firm: ["the city library", "a solar start-up", "the veterinary clinic", "the local newspaper"],
  book: ["a biography of Ada Lovelace", "an old detective novel", "a book about glaciers"],
};

const NEWS: readonly News[] = [
  {
    ask: "Anything new on your side?",
    tell: "I signed up for a {class} course {day}. It is so calming, I lose track of time there.",
    question: "When did {name} sign up for the {class} class?",
  },
  {
    ask: "So, how was your camping trip to {place}?",
    tell: "It rained the entire first night and the tent leaked. The kids still loved every minute!",
    question: "What went wrong on {name}'s camping trip to {place}?",
  },
  {
    ask: "Do I hear an animal in the background?",
    tell: "Ha, yes! We adopted {pet} {day}. The shelter called us out of the blue.",
    question: "Which animal did {name} adopt from the shelter?",
  },
  {
    ask: "How did the interview at {firm} go?",
    tell: "They called back within an hour. I start on Monday and I am terrified.",
    question: "Did {name} get the job at {firm}?",
  },
  {
    ask: "Did you cook for everybody again?",
    tell: "I tried {dish} from my {kin}'s notebook. Nobody left a crumb.",
    question: "What did {name} cook from the {kin}'s notebook?",
  },
  {
    ask: "You sounded worried on the phone. Is your {kin} all right?",
    tell: "The operation went well, they let her go home {day}. I finally slept through.",
    question: "How did the operation of {name}'s {kin} go?",
  },
  {
    ask: "What have you been reading?",
    tell: "Mostly {book}. I picked it up at the flea market {day} and could not stop.",
    question: "What book did {name} find at the flea market?",
  },
  {
    ask: "And the marathon?",
    tell: "Four hours and eleven minutes. My knees still have not forgiven me.",
    question: "How long did {name} need for the marathon?",
  },
  {
    ask: "Are you still thinking about moving?",
    tell: "We signed the lease {day}: three rooms near the harbour in {place}. Packing starts now.",
    question: "Where near the harbour is {name} moving to?",
  },
  {
    ask: "How is the band?",
    tell: "Our drummer quit, so we cancelled the show {day}. I may learn the drums myself.",
    question: "Why did {name}'s band cancel the concert?",
  },
  {
    ask: "Was the wedding as grand as your {kin} wanted?",
    tell: "Two hundred guests, and the cake arrived in pieces. I gave a speech and cried halfway.",
    question: "How many guests came to the wedding of {name}'s {kin}?",
  },
  {
    ask: "Did the garden survive the storm?",
    tell: "The greenhouse is gone, but the tomatoes made it. I am building a sturdier one {day}.",
    question: "What did the storm destroy in {name}'s garden?",
  },
];

const SMALL_TALK = [
  "Hey {other}!",
  "Wow, that is amazing!",
  "Thanks, {other}.",
  "Haha, same here.",
  "I know, right?",
  "That sounds like you, {other}.",
  "How have you been, {other}?",
  "I am so happy for you!",
  "Take care, talk soon!",
  "Oh no, really?",
  "Tell me more, {other}!",
  "Good to hear your voice again.",
  "It has been a long week at work, to be honest.",
  "We should meet for coffee one of these days.",
];

/** Builds conversations of several sessions, one turn per record. The same numbers give the same set everywhere. */
export function dialogues({ pairs = 4, sessions = 12, perSession = 5 } = {}): RecallSet {
  const random = sequence(20_261_117);
  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)]!;
  const docs: { id: string; text: string; at: string; session: string }[] = [];
  const queries: { text: string; rel: Record<string, number> }[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const people = [NAMES[2 * pair]!, NAMES[2 * pair + 1]!] as const;
    for (let session = 0; session < sessions; session++) {
      const start = Date.UTC(2026, session % 12, 1 + random(27), 8 + random(12));
      let turns = 0;
      const say = (speaker: string, text: string): string => {
        const id = `d${pair}s${session}t${turns}`;
        const at = new Date(start + 40_000 * turns++).toISOString();
        docs.push({ id, text: `${speaker}: ${text}`, at, session: `d${pair}s${session}` });
        return id;
      };
      for (let piece = 0; piece < perSession; piece++) {
        const [name, other] = random(2) === 0 ? people : ([people[1], people[0]] as const);
        const values = Object.fromEntries(Object.entries(VALUES).map(([key, items]) => [key, pick(items)]));
        const fill = (text: string, listener = other) =>
          text.replace(/\{(\w+)\}/g, (_, key: string) => ({ ...values, name, other: listener })[key] ?? "");
        for (let chat = random(3); chat > 0; chat--) say(name, fill(pick(SMALL_TALK)));
        const news = pick(NEWS);
        say(other, fill(news.ask));
        const gold = say(name, fill(news.tell));
        say(other, fill(pick(SMALL_TALK), name));
        queries.push({ text: fill(news.question), rel: { [gold]: 1 } });
      }
    }
  }
  // Equal questions share their answers.
  const merged = new Map<string, Record<string, number>>();
  for (const { text, rel } of queries) merged.set(text, { ...merged.get(text), ...rel });
  return { name: "dialogue", docs, queries: [...merged].map(([text, rel]) => ({ text, rel })) };
}

/** Returns a generator of pseudo-random numbers below a limit (mulberry32). */
function sequence(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) % limit;
  };
}
