/** A history of translations, in this browser only, and only if the user switches it on. */

import type { Store } from "./storage";
import type { TranslationInput } from "./text";

export interface Entry extends TranslationInput {
  result: string;
}

const NAME = "jumok-history";
const MAX_ENTRIES = 50;
const MAX_CHARACTERS = 500_000; // browsers store a few millions
/** Whether the added text continues that of an entry, which it then replaces. */
const isContinued = (entry: Entry, added: Entry) => entry.source === added.source && entry.target === added.target && added.text.startsWith(entry.text.slice(0, -1));

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

/** The entries with a new one, newest first. The oldest are dropped if they are too many or too long. */
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
