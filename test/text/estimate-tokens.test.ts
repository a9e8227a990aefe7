import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { cutText, estimateTokens, tokensAtMost } from "../../src/text/estimate-tokens.ts";
import { countTokens } from "../support/o200k.ts";

const root = resolve(import.meta.dirname, "../..");

/** Reads the texts under a folder, each cut to the length of a long record. */
function texts(folder: string, ending: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => ending.test(file))
    .map((file) => readFileSync(join(root, folder, file), "utf8").slice(0, 8_000))
    .filter((text) => countTokens(text) >= 100);
}

const error = (text: string) => estimateTokens(text) / countTokens(text) - 1;

/** Reads the texts of a translation in axe-core, twelve messages at a time. */
function translation(locale: string): string[] {
  const messages: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === "string") messages.push(value);
    else if (typeof value === "object" && value !== null) Object.values(value).forEach(collect);
  };
  collect(JSON.parse(readFileSync(join(root, `node_modules/axe-core/locales/${locale}.json`), "utf8")));
  const parts = Array.from({ length: Math.ceil(messages.length / 12) }, (_, part) => messages.slice(12 * part, 12 * part + 12).join("\n"));
  return parts.filter((text) => countTokens(text) >= 100);
}

// No constant of the estimate was fitted on these texts.
const SAMPLES: Readonly<Record<string, readonly string[]>> = {
  German: translation("de"),
  French: translation("fr"),
  Polish: translation("pl"),
  Russian: translation("ru"),
  Chinese: translation("zh_CN"),
  Japanese: translation("ja"),
  Korean: translation("ko"),
  prose: texts("docs", /\.md$/),
  TypeScript: texts("src", /\.ts$/),
  JavaScript: texts("node_modules/hono/dist", /\.js$/),
  "source files in many languages": texts("test/fixtures/code", /^\w+\.\w+\.txt$/),
};

describe("the estimate of tokens", () => {
  it.each(Object.keys(SAMPLES))("is within 5 % of o200k over %s, and within 10 % for 19 of 20 texts", (name) => {
    const sample = SAMPLES[name]!;
    expect(sample.length).toBeGreaterThan(4);
    const sum = (count: (text: string) => number) => sample.reduce((total, text) => total + count(text), 0);
    expect(Math.abs(sum(estimateTokens) / sum(countTokens) - 1)).toBeLessThan(0.05);
    expect(sample.filter((text) => Math.abs(error(text)) <= 0.1).length / sample.length).toBeGreaterThanOrEqual(0.95);
  });

  it.each([
    [
      "German",
      "Die Prüfung der Verträge läuft über mehrere Wochen, weil die Behörde jede Änderung einzeln bestätigt und schriftlich begründet.",
    ],
    [
      "French",
      "La vérification des contrats dure plusieurs semaines, car l'autorité confirme chaque modification séparément et par écrit.",
    ],
    ["Russian", "Проверка договоров занимает несколько недель, потому что ведомство подтверждает каждое изменение отдельно и письменно."],
    ["Chinese", "合同的审查需要几个星期，因为主管部门会逐一确认每一项修改，并以书面形式说明理由。"],
    ["Japanese", "契約の確認には数週間かかります。担当の役所が変更を一つずつ確認し、書面で理由を示すためです。"],
  ])("is within 10 % for a sentence in %s", (_, text) => expect(Math.abs(error(text))).toBeLessThanOrEqual(0.1));

  it.each(["el", "he"])("is within a sixth for the script of %s, which the vocabulary filter lacks", (locale) => {
    const text = translation(locale).join("\n");
    expect(Math.abs(error(text))).toBeLessThan(1 / 6);
    expect(countTokens(text)).toBeLessThanOrEqual(1.1 * tokensAtMost(text));
  });

  it.each([
    [
      "Russian",
      "Панель управления Kubernetes перезапускает под, если проверка готовности трижды завершилась ошибкой; увеличили таймаут до тридцати секунд. Сериализатор экранирует спецсимволы, поэтому десериализация вложенных объектов расходилась с ожидаемой; добавлен регрессионный тест. Хэшируем пароли алгоритмом Argon2id, рефреш-токены храним зашифрованными, куки помечаем флагом HttpOnly. ",
    ],
    [
      "Chinese",
      "修复了并发写入时的死锁：先获取行锁再更新索引，并为重试增加指数退避。鉴权中间件缓存了过期的令牌，吊销后仍可访问；改为每次校验签名与黑名单。把嵌套的闭包重构为纯函数，剔除冗余的拷贝，序列化耗时骤降。",
    ],
  ])("keeps a technical text in %s within the tolerance of a budget", (_, text) => {
    const record = text.repeat(10);
    expect(countTokens(record)).toBeLessThanOrEqual(1.1 * tokensAtMost(record));
    expect(countTokens(cutText(record, 300, "cut").text)).toBeLessThanOrEqual(330);
  });

  it.each([
    ["", 0],
    ["a", 1],
    ["hello world", 2],
    ["1234567", 3],
    ["----------------------------------------", 1],
    ["\n\n", 1],
  ])("of %j is %i", (text, tokens) => expect(estimateTokens(text)).toBe(tokens));
});
