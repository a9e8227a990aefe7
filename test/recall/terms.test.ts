import { describe, expect, it } from "vitest";
import { bm25 } from "../../src/text/bm25.ts";
import { detectLanguage, type Language, stem } from "../../src/text/language.ts";
import { codeTerms, languageMarker, queryTerms, recordTerms } from "../../src/text/terms.ts";

describe("the language of a text", () => {
  it.each([
    ["The tests of the parser fail since the upgrade", undefined],
    ["Die Tests des Parsers schlagen seit dem Update fehl", "de"],
    ["Les tests de l'analyseur échouent depuis la mise à jour", "fr"],
    ["¿Por qué fallan las pruebas del analizador?", "es"],
    ["I test del parser falliscono da quando è stato aggiornato", "it"],
    ["Os testes não passam porque a versão mudou", "pt"],
    ["Ayrıştırıcının testleri neden başarısız oldu ve bu ne kadar sürdü", "tr"],
    ["Testele nu trec pentru că s-a schimbat versiunea și parserul", "ro"],
    ["Tại sao các bài kiểm tra của chúng tôi không chạy", "vi"],
    ["Чому тести не проходять після оновлення", "uk"],
    ["Почему тесты не проходят после обновления", undefined],
    ["解析器的测试失败了", undefined],
    ["for (let i = 0; i < n; i++) { a.de.la(i, la, de) }", undefined],
    ["Los Angeles, San Diego and the LA Galaxy", undefined],
    ["", undefined],
  ] as const)("of %j is %s", (text, language) => {
    expect(detectLanguage(text)).toBe(language);
  });
});

describe("terms of a record", () => {
  it.each([
    ["running relational databases", ["run", "relat", "databas"]],
    ["parseHTTPRequest snake_case", ["parsehttprequest", "pars", "http", "request", "snake_case", "snake", "case"]],
    ["вопросами уступила", ["вопрос", "уступ"]],
    ["Die Verbindungen der Häuser", ["die", "verbind", "der", "haus", "$lang_de"]],
    ["防守丢分", ["防", "防守", "守", "守丢", "丢", "丢分", "分"]],
    ["ＮＦＬ ﬁle", ["nfl", "file"]],
    ["ภาษาไทย", ["ภา", "ภาษ", "าษ", "าษา", "ษา", "ษาไ", "าไ", "าไท", "ไท", "ไทย", "ทย"]],
    ["المدارسُ", ["مدارس"]],
  ])("in %j are stems, parts and pairs", (text, terms) => {
    expect(recordTerms(text)).toEqual(terms);
  });

  it("of code are those of English, whatever language its words resemble", () => {
    expect(codeTerms("die der das und nicht")).toEqual(["die", "der", "da", "und", "nicht"]);
  });

  it("do not stem a very long word", () => {
    const word = "a".repeat(100_000).concat("ing");
    expect(recordTerms(word)).toEqual([word]);
  });

  it("exist for every word in every language", () => {
    const letters = [..."abcdefghijklmnopqrstuvwxyzäéñßığøабвгіяαβγςاةيकखििा"];
    const words = Array.from({ length: 3_000 }, (_, n) =>
      [1, 7, 31, 101, 7, 13]
        .slice(0, 1 + (n % 6))
        .map((step, at) => letters[(n * step + at * 17) % letters.length])
        .join(""),
    );
    const languages = "ar da de el en es fi fr hi hu hy id it nl no pt ro ru sv ta tr uk vi".split(" ") as Language[];
    for (const language of languages) for (const word of words) expect(stem(word, language)).not.toBe("");
  });
});

describe("terms of a query", () => {
  it("are without the stop words of its language", () => {
    expect(queryTerms("how do we run the tests")).toEqual([["run"], ["test"]]);
    expect(queryTerms("Wie viele Punkte gab die Verteidigung ab?", ["de"])).toEqual([
      ["punkt"],
      ["gab"],
      ["verteidigung", "verteid"],
      ["ab"],
    ]);
    expect(queryTerms("what is this")).toEqual([["what"], ["is"], ["thi"]]);
  });

  it("contain the stem of every language that the index has", () => {
    expect(queryTerms("Verbindungen", [])).toEqual([["verbindungen"]]);
    expect(queryTerms("Verbindungen", ["de"])).toEqual([["verbindungen", "verbind"]]);
  });

  it("are distinct, also between words", () => {
    expect(queryTerms("test tests testing")).toEqual([["test"]]);
  });
});

describe("a query in the language of a record", () => {
  const records = new Map([
    ["en", "The connections to the database are closed after each request"],
    ["de", "Die Verbindungen zur Datenbank werden nach jeder Anfrage geschlossen"],
    ["ru", "Соединения с базой данных закрываются после каждого запроса"],
    ["zh", "每次请求后关闭数据库连接"],
    ["ja", "リクエストのたびにデータベース接続を閉じる"],
    ["ko", "요청이 끝날 때마다 데이터베이스 연결을 닫습니다"],
    ["fr", "Les connexions à la base de données sont fermées après chaque requête"],
  ]);
  it.each([
    ["closing database connection", "en"],
    ["Verbindung zur Datenbank schließen", "de"],
    ["Verbindung", "de"],
    ["соединение базы данных", "ru"],
    ["数据库的连接", "zh"],
    ["データベースの接続", "ja"],
    ["데이터베이스 연결이", "ko"],
    ["fermer la connexion à la base", "fr"],
  ])("%j finds it first among other languages", (query, id) => {
    expect(bm25(records, query)[0]?.id).toBe(id);
  });
});

it("marks the language of a record with a term that no text splits into", () => {
  expect(recordTerms("Die Verbindungen der Häuser")).toContain(languageMarker("de"));
  expect(recordTerms("lang_de")).not.toContain(languageMarker("de"));
});
