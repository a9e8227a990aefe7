import { CairnError } from "../model/errors.ts";

/** Refuses an edit with the text of a shortened answer, which would replace the whole text. */
export function assertWhole(field: string, text: string | undefined): void {
  const [, getter] = (text && /… \[cut[^\]]{0,60}; use ([a-z_]{1,30})\]\s{0,9}$/.exec(text)) || [];
  if (getter !== undefined)
    throw new CairnError(
      "invalid_input",
      `${field}: ends with "[cut …]", the mark of a shortened answer. Read the whole text with ${getter}, then edit that.`,
    );
}
