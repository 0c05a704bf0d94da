/** A history of translations, on this device only, and only if its user wants one. */

import type { Store } from "./storage";
import type { Asked } from "./text";

export interface Entry extends Asked {
  result: string;
}

const NAME = "jumok-history";
const MAX_ENTRIES = 50;
const MAX_CHARACTERS = 500_000; // browsers store a few millions
/** A text that goes on where an entry has ended takes its place: it was typed further. */
const isContinued = (entry: Entry, added: Entry) => entry.source === added.source && entry.target === added.target && added.text.startsWith(entry.text.slice(0, -1));

/** null: no history is kept. */
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
