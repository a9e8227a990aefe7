import { SLICE_CHARS, SLICE_TEXTS } from "./protocol.ts";

/** Returns the texts of the next request, from `start`. Cuts off what the model never reads, which changes no vector. */
export function nextSlice(texts: readonly string[], start: number, textChars: number | undefined): string[] {
  const slice: string[] = [];
  for (let index = start, chars = 0; index < texts.length && slice.length < SLICE_TEXTS && chars < SLICE_CHARS; index++) {
    const text = (texts[index] ?? "").slice(0, textChars);
    slice.push(text);
    chars += text.length;
  }
  return slice;
}
