import type { LoadedConfig } from "./load.ts";
import type { Setting } from "./settings.ts";

export interface ShownSetting {
  readonly key: string;
  /** The effective value, with secrets masked; `null` where there is none. */
  readonly value: unknown;
  readonly source: string;
  readonly description: string;
}

/** Returns the effective settings with the source of each value. Secrets are masked, so the list can be printed. */
export function showConfig({ settings }: LoadedConfig): ShownSetting[] {
  return settings.map(({ setting, value, origin }) => ({
    key: setting.key,
    value: maskValue(setting, value),
    source: origin.name ? `${origin.source} ${origin.name}` : origin.source,
    description: setting.description,
  }));
}

/** Returns one line per ignored setting of a project file, without its value: a file from elsewhere may contain anything. */
export function ignoredLines({ ignored }: Pick<LoadedConfig, "ignored">): string[] {
  return ignored.slice(0, IGNORED_SHOWN).map(({ where, key, problem }) => `${where}: ${key ? `${key} ` : ""}${problem}`);
}

/** A repository from elsewhere must not flood the terminal. */
const IGNORED_SHOWN = 10;
const MASK = "********";

/** Returns the value with secrets masked. */
export function maskValue(setting: Setting, value: unknown): unknown {
  if (value === undefined) return null;
  if (setting.secret) return MASK;
  return typeof value === "string" && value.includes("://") ? maskUrl(value) : value;
}

/** Passwords travel in URLs, before the host or as a parameter. */
function maskUrl(text: string): string {
  if (!URL.canParse(text)) {
    const [start, end] = [text.indexOf("//"), text.lastIndexOf("@")];
    return start >= 0 && end > start + 1 ? `${text.slice(0, start)}//${MASK}${text.slice(end)}` : text;
  }
  const url = new URL(text);
  if (url.password) url.password = MASK;
  for (const name of [...url.searchParams.keys()]) if (/pass|secret|token|key/i.test(name)) url.searchParams.set(name, MASK);
  return url.href;
}
