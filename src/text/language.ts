import { createRequire } from "node:module";

/** A language whose words are stemmed, as an ISO 639-1 code. `vi` has no stems, but needs its diacritics. */
export type Language = keyof typeof STEMMERS;

/** The stemmers of the package, loaded when a text first needs one. */
const STEMMERS = {
  ar: "arabic",
  da: "danish",
  de: "german",
  el: "greek",
  en: "english",
  es: "spanish",
  fi: "finnish",
  fr: "french",
  hi: "indian",
  hu: "hungarian",
  hy: "armenian",
  id: "indonesian",
  it: "italian",
  nl: "dutch",
  no: "norwegian",
  pt: "portuguese",
  ro: "romanian",
  ru: "russian",
  sv: "swedish",
  ta: "tamil",
  tr: "turkish",
  uk: "ukrainian",
  vi: undefined,
} as const;

/** The language of a word whose text has no other language in that script. */
const SCRIPT_DEFAULTS: readonly (readonly [RegExp, Language])[] = [
  [/\p{Script=Latin}/u, "en"],
  [/\p{Script=Cyrillic}/u, "ru"],
  [/\p{Script=Arabic}/u, "ar"],
  [/\p{Script=Greek}/u, "el"],
  [/\p{Script=Devanagari}/u, "hi"],
  [/\p{Script=Armenian}/u, "hy"],
  [/\p{Script=Tamil}/u, "ta"],
];

/** Frequent words that tell a language from others of its script. Queries are searched without them. */
const COMMON_WORDS: Readonly<Partial<Record<Language, string>>> = {
  en: "a an and are as at be but by can could do does for from get has have how i if in into is it its of on or should so than that the their then there these they this to was we were what when where which who why will with would you your",
  de: "aber als am an auch auf aus bei bis das dass dem den der des die ein eine einem einen einer es für hat haben hatte hatten ich ihr im in ist kann können mit nach nicht noch oder sein sich sie sind über um und uns unter viele vom von vor war waren warum was welche welchem welchen welcher welches wenn wer werden wie wieder wir wird wo wurde wurden zu zum zur zwischen",
  fr: "à au aux avec ce ces cette comment combien dans de des dont du elle en entre est et été était il ils je la le les leur mais n ne nous on ont où ou par pas plus pour pourquoi qu quand que quel quelle quelles quels qui sa se ses son sont sur un une vous y",
  es: "a al como cómo con cuál cuáles cuando cuándo cuánto cuántos de del donde dónde e el ella en entre era es esta este fue ha han la las lo los más no o para pero por porque qué que quién quiénes se ser sin sobre son su sus también un una y ya",
  it: "a ai al alla anche che chi ci come con cosa cui da dal dalla degli dei del della delle di dove e è era gli ha hanno i il in la le lo ma nel nella non o per perché più qual quale quali quando quanti quanto questa questo se si sono su sul sulla un una uno",
  pt: "a ao aos as à às com como da das de do dos e é em entre era foi foram há mais mas na não nas no nos o onde os ou para pela pelo por porque qual quais quando quantos que quem se sem ser seu seus sua são também um uma",
  nl: "aan als bij dan dat de deze die dit door een en er geen had heeft het hij hoe ik in is je kan maar met naar niet nog of om ook op over te tot uit van veel voor waar waarom was wat welk welke werd wie wordt ze zich zijn",
  sv: "att av blev de den denna det där eller en ett från för ha hade har hur hur i in inte jag kan man med men mellan många nu när och om på sig som till under ut vad var varför vem vid vilka vilken är",
  da: "af at blev da de den der det efter eller en er et for fra ham han har havde hun hvad hvem hvilke hvilken hvor hvorfor hvordan i ikke jeg kan med men mange mellem når og også om på sig som til ud var vi ved",
  no: "av at ble da de den der det eller en er et etter for fra ham han har hadde hun hva hvem hvilke hvilken hvor hvorfor hvordan i ikke jeg kan med men mange mellom når og også om på seg som til ut var vi ved",
  fi: "ei että hän ja jos joka jotka kanssa kuin kuinka kuka me mikä milloin missä mitä mutta myös mukaan ne niin nyt oli olivat on ovat se sekä siitä tai tämä vain vuonna",
  ro: "a al ale au această aceasta acest bine ca când care cât câte câți ce cele cine cu cum de despre din după este era fi fost în intre între la mai nu o pe pentru prin sa sau se sunt să și un una unde",
  hu: "a az egy és hogy nem is volt van ami aki amely ki mi mit mely milyen melyik hány mikor hol miért vagy meg csak már még ez ezt azt de ha mint után szerint között",
  tr: "ama bir bu çok da daha de gibi hangi hangisi için ile ise kadar kaç kim mi mı mu mü nasıl ne neden nedir nerede ne olan olarak oldu olduğu sonra tarafından ve veya ya",
  id: "ada adalah akan atau bagaimana bahwa berapa dalam dan dapat dari dengan di dia ini itu juga kapan karena ke mana mengapa mereka oleh pada saat sebagai siapa tidak untuk yang",
  vi: "ai bao bằng bị các cái cho có của cùng được đã đâu để gì hay khi không là làm mà một nào này nhiêu như những ở ra sao sẽ tại thì theo trên trong từ và vào về với vì",
  ru: "а без бы был была были было в вам вас во вот все вы где да для до его ее если есть еще же за и из или им их к как какая какие каких каким какими какова каково какого какое каком какой какую ко когда кого кому котором которые который кто ли между мы на над не него нее нет но ну о об он она они оно от по под почему при с сколько со так такой там те тем то того тоже только том ты у уже чего чей чем что чтобы эта эти это этот я",
  uk: "або але без був була було були в ви від він вона вони все для до є з за зі і із й її його коли які який яка яке як якщо на не ні о об про під по при скільки та так те ти то тому у хто це цей чи чого чому що щоб я",
  ar: "أن أو إلى الا التي الذي الذين ان او أي اين أين الى ب بعد بين ثم حتى على عن عند غير في قبل قد كان كانت كل كم كما كيف لا لم لماذا ليس ما ماذا متى مع من منذ هذا هذه هل هو هي هؤلاء و وقد ولا وما يكون",
  el: "από για δεν είναι είχε ένα ένας εκ η ή ήταν θα και κατά με μετά μια να ο οι όπως όταν όχι ότι πόσα πόσες πόσοι πόσο που πού ποια ποιες ποιο ποιοι ποιον ποιος πότε προς πώς σε στα στη στην στις στο στον στους τα την της τι τις το τον του τους των ως",
  hi: "और का की के को में से है हैं था थी थे ने पर यह वह एक कि क्या कौन कब कहाँ कहां क्यों कितने कितनी कितना किस किसने किसे कैसे जो तो भी नहीं हो इस उस ये वे द्वारा लिए साथ बाद तक ही या अपने होता होती",
};

let splitWords: ReadonlyMap<Language, ReadonlySet<string>> | undefined;

function commonWords(): ReadonlyMap<Language, ReadonlySet<string>> {
  splitWords ??= new Map(Object.entries(COMMON_WORDS).map(([language, words]) => [language as Language, new Set(words.split(" "))]));
  return splitWords;
}

/** Letters that only some languages of a script use, each as good as a frequent word. */
const LETTERS: readonly (readonly [RegExp, readonly Language[]])[] = [
  [/[ơưđạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ]/u, ["vi"]],
  [/ß/u, ["de"]],
  [/[ñ¿¡]/u, ["es"]],
  [/[ãõ]/u, ["pt"]],
  [/ø|æ/u, ["da", "no"]],
  [/[ışğ]/u, ["tr"]],
  [/[őű]/u, ["hu"]],
  [/[țșăţ]/u, ["ro"]],
  [/œ/u, ["fr"]],
  [/[іїєґ]/u, ["uk"]],
];

/** Characters of a text that decide its language. */
const SAMPLE_CHARS = 2_000;

/**
 * Detects the language of a text by its frequent words and letters. Returns undefined where English or the script decides: a text
 * without two signs of another language, and a script with one language. Deterministic, so that a record always has the same terms.
 */
export function detectLanguage(text: string): Language | undefined {
  const sample = text.slice(0, SAMPLE_CHARS).normalize("NFC").toLowerCase();
  const cyrillic = /\p{Script=Cyrillic}/u.test(sample);
  const candidates = [...commonWords()].filter(([language]) => CYRILLIC.has(language) === cyrillic && !OTHER_SCRIPTS.has(language));
  const signs = new Map<Language, number>();
  const addSigns = (language: Language, count: number) => signs.set(language, (signs.get(language) ?? 0) + count);
  // Words of prose only: in `np.cos(x)` the letters between punctuation are no words. A single letter may be a variable.
  const words = new Set([...sample.matchAll(/(?<=^|[\s("'«„“¿¡-])\p{L}[\p{L}\p{M}]+(?=$|[\s.,;:!?)"'»“”-])/gu)].map(([word]) => word));
  for (const word of words) for (const [language, common] of candidates) if (common.has(word)) addSigns(language, 1);
  for (const [letters, languages] of LETTERS) if (letters.test(sample)) for (const language of languages) addSigns(language, 1);
  const [best, second] = [...signs].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  if (!best || best[0] === "en" || best[0] === "ru" || best[1] === second?.[1]) return undefined;
  return best[1] >= Math.max(2, 0.05 * words.size) ? best[0] : undefined;
}

const CYRILLIC: ReadonlySet<Language> = new Set(["ru", "uk"]);
const OTHER_SCRIPTS: ReadonlySet<Language> = new Set(["ar", "el", "hi"]);

/** Returns whether a word says nothing about a text in this language. */
export function isCommonWord(word: string, language: Language): boolean {
  return commonWords().get(language)?.has(word) ?? false;
}

/** Returns the language by which a word is stemmed: that of its text if it has the word's script, else the usual one of the script. */
export function wordLanguage(word: string, textLanguage: Language | undefined): Language | undefined {
  const fallback = SCRIPT_DEFAULTS.find(([script]) => script.test(word))?.[1];
  if (textLanguage === undefined || fallback === undefined || OTHER_SCRIPTS.has(fallback)) return fallback;
  return (fallback === "ru") === CYRILLIC.has(textLanguage) ? textLanguage : fallback;
}

/** Longer words are names or encoded data; the stemmers' patterns take more than linear time. */
const STEMMED_CHARS = 40;
/** Limit of remembered stems per language: texts repeat their words. */
const REMEMBERED = 20_000;

const load = createRequire(import.meta.url);
const stemmers = new Map<Language, { readonly stem: (word: string) => string; readonly known: Map<string, string> }>();

/** Returns the stem of a lower-case word. */
export function stem(word: string, language: Language): string {
  const name = STEMMERS[language];
  if (name === undefined || word.length > STEMMED_CHARS) return word;
  let entry = stemmers.get(language);
  if (!entry) {
    const { stemmer } = load(`@orama/stemmers/${name}`) as { stemmer: (word: string) => string };
    entry = { stem: stemmer, known: new Map() };
    stemmers.set(language, entry);
  }
  let stemmed = entry.known.get(word);
  if (stemmed === undefined) {
    if (entry.known.size >= REMEMBERED) entry.known.clear();
    stemmed = entry.stem(word) || word;
    entry.known.set(word, stemmed);
  }
  return stemmed;
}
