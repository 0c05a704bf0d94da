/** A history of translations, in this browser only, and only if the user switches it on. */

import type { Store } from "./storage";
import type { TranslationInput } from "./text";

export interface Entry extends TranslationInput {
  result: string;
}

const NAME = "jumok-history";
export const MAX_ENTRIES = 50;
export const MAX_CHARACTERS = 500_000; // of all entries; browsers store a few millions per site
/** Whether the added text continues that of an entry, which it then replaces. The last character may differ: a full stop gives way to the next word. */
const isContinued = (entry: Entry, added: Entry) => entry.source === added.source && entry.target === added.target && added.text.startsWith(entry.text.length > 1 ? entry.text.slice(0, -1) : entry.text);

/** The stored entries; null if no history is kept. */
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

export function writeHistory(storage: Store, entries: Entry[] | null): void {
  if (entries) storage.setItem(NAME, JSON.stringify(entries));
  else storage.removeItem(NAME);
}

/** The entries with a new one, newest first. The oldest are dropped beyond `MAX_ENTRIES` entries or `MAX_CHARACTERS` characters. */
export function addEntry(entries: Entry[], added: Entry): Entry[] {
  const size = ({ text, result }: Entry) => text.length + result.length;
  if (size(added) > MAX_CHARACTERS) return entries;
  const isSame = (entry: Entry) => entry.text === added.text && entry.target === added.target;
  const others = entries.filter((entry, index) => !isSame(entry) && !(index === 0 && isContinued(entry, added)));
  let total = 0;
  return [added, ...others].slice(0, MAX_ENTRIES).filter((entry) => (total += size(entry)) <= MAX_CHARACTERS);
}

function isEntry(value: unknown): value is Entry {
  const fields = value as Record<string, unknown> | null;
  return typeof fields === "object" && fields !== null && ["source", "target", "text", "result"].every((name) => typeof fields[name] === "string");
}
