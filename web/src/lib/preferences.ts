/** Remembers theme, language and whether the story was seen.
 *
 * They are stored in a cookie and in the local storage of the browser. Each time the server of a live page starts, the page has a new
 * port and therefore a new local storage, but cookies do not depend on the port. A page that was opened from disk has local storage but
 * no cookies. A page in a notebook has neither and remembers nothing. */

import type { Theme } from "./colour";
import { LANGUAGES, type Language } from "./strings";

export interface Preferences {
  language?: Language;
  appearance?: "system" | Theme;
  /** Whether the story was finished or skipped. */
  storySeen?: boolean;
}

const NAME = "jumok-page";
const YEAR_SECONDS = 365 * 24 * 3600;
const APPEARANCES = ["system", "light", "dark"] as const;

/** Parse a text such as "ko.dark.seen". Invalid parts are ignored. */
export function parsePreferences(text: string): Preferences {
  const [language, appearance, story] = text.split(".");
  return {
    language: (Object.keys(LANGUAGES) as Language[]).find((name) => name === language),
    appearance: APPEARANCES.find((name) => name === appearance),
    ...(story === "seen" && { storySeen: true }),
  };
}

export function recall(): Preferences {
  try {
    const cookie = document.cookie.split("; ").find((entry) => entry.startsWith(`${NAME}=`));
    return parsePreferences(cookie?.slice(NAME.length + 1) ?? localStorage.getItem(NAME) ?? "");
  } catch {
    return {};
  }
}

export function remember({ language, appearance, storySeen }: Preferences): void {
  const text = `${language ?? ""}.${appearance ?? ""}${storySeen ? ".seen" : ""}`;
  try {
    localStorage.setItem(NAME, text);
    document.cookie = `${NAME}=${text}; path=/; max-age=${YEAR_SECONDS}; SameSite=Strict`;
  } catch {
    // Without storage, nothing is remembered.
  }
}
