/** Stores the history of translations in the local storage of the browser, if the user has switched it on. */

import type { Store } from "./storage";
import type { TranslationInput } from "./text";

export interface Entry extends TranslationInput {
  result: string;
}

const NAME = "jumok-history";
export const MAX_ENTRIES = 50;
/** The limit for all entries together. Browsers store a few million characters per site. */
export const MAX_CHARACTERS = 500_000;

/** Whether the text of `newEntry` continues the text of `entry`. Then `newEntry` replaces `entry`. The last character of the old text may
 * differ, because a full stop is often deleted before the text continues. */
function isContinued(entry: Entry, newEntry: Entry): boolean {
  const start = entry.text.length > 1 ? entry.text.slice(0, -1) : entry.text;
  return entry.source === newEntry.source && entry.target === newEntry.target && newEntry.text.startsWith(start);
}

/** The stored entries; null if the history is switched off. */
export function readHistory(storage: Store): Entry[] | null {
  const stored = storage.getItem(NAME);
  if (stored === null) return null;
  try {
    const entries: unknown = JSON.parse(stored);
    return Array.isArray(entries) ? entries.filter(isEntry) : [];
  } catch {
    return [];
  }
}

/** Store the entries. Null switches the history off and deletes them. */
export function writeHistory(storage: Store, entries: Entry[] | null): void {
  if (entries) storage.setItem(NAME, JSON.stringify(entries));
  else storage.removeItem(NAME);
}

/** The entries with a new entry, the newest first. The new entry replaces an entry with the same text and target language. It also
 * replaces the newest entry if it continues the text of that entry. The oldest entries are removed if there are more than `MAX_ENTRIES` entries or `MAX_CHARACTERS` characters.
 * A new entry that alone has more characters is not added. */
export function addEntry(entries: Entry[], newEntry: Entry): Entry[] {
  const size = ({ text, result }: Entry) => text.length + result.length;
  if (size(newEntry) > MAX_CHARACTERS) return entries;
  const isSame = (entry: Entry) => entry.text === newEntry.text && entry.target === newEntry.target;
  const others = entries.filter((entry, index) => !isSame(entry) && !(index === 0 && isContinued(entry, newEntry)));
  let total = 0;
  return [newEntry, ...others].slice(0, MAX_ENTRIES).filter((entry) => (total += size(entry)) <= MAX_CHARACTERS);
}

function isEntry(value: unknown): value is Entry {
  const fields = value as Record<string, unknown> | null;
  return typeof fields === "object" && fields !== null && ["source", "target", "text", "result"].every((name) => typeof fields[name] === "string");
}
