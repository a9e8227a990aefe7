import type { ImportRecord } from "../../src/knowledge/import.ts";

const PRODUCTS = ["вклад", "карту", "кредит", "счёт", "ипотеку", "страховку", "перевод"];
const ACTIONS = ["открыть", "закрыть", "пополнить", "заблокировать", "оформить", "продлить", "изменить"];
const PLACES = ["в отделении", "в приложении", "по телефону", "на сайте", "за границей"];

/** N different questions and answers, as a bank's help desk has them. */
export function templates(count: number): ImportRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const product = PRODUCTS[index % 7]!;
    const action = ACTIONS[Math.floor(index / 7) % 7]!;
    const where = PLACES[Math.floor(index / 49) % 5]!;
    return {
      id: `tmpl_${String(index + 1).padStart(3, "0")}`,
      kind: "faq",
      category: `Продукты - ${product}`,
      subcategory: action,
      question: `Как ${action} ${product} ${where}?`,
      answer: `Чтобы ${action} ${product} ${where}, возьмите паспорт. Шаг ${index + 1}.`,
    };
  });
}
