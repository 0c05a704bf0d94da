/** Stores the text with its languages and tags (for example `<polite>`), and the translations that the user chose. So the tab still has them
 * after a reload. */

import type { Store } from "./storage";
import type { TranslationInput } from "./text";
import type { Version } from "./translation";

export interface Draft extends TranslationInput {
  tags: string[];
}

const [DRAFT, CHOICES] = ["jumok-draft", "jumok-choices"];
/** At most this many choices are stored. If there are more, the oldest choices are left out. */
export const MAX_CHOICES = 200;

function parse(stored: string | null): unknown {
  try {
    return JSON.parse(stored ?? "null");
  } catch {
    return null;
  }
}

export function writeDraft(store: Store, draft: Draft): void {
  store.setItem(DRAFT, JSON.stringify(draft));
}

export function readDraft(store: Store): Draft | null {
  return parse(store.getItem(DRAFT)) as Draft | null;
}

/** The tags for a text from an address. If the draft has the same text and languages, they are the tags of the draft. If not, the result is
 * undefined. */
export function tagsOf({ source, target, text }: Partial<TranslationInput>, draft: Draft | null): string[] | undefined {
  return draft && draft.source === source && draft.target === target && draft.text === text ? draft.tags : undefined;
}

/** The translations that the user chose, by a key of languages, tags and sentence. */
export class Choices {
  readonly #chosen: Map<string, Version>;

  constructor(private readonly store: Store) {
    const stored = parse(store.getItem(CHOICES));
    this.#chosen = new Map(Array.isArray(stored) ? (stored as [string, Version][]) : []);
  }

  get(key: string): Version | undefined {
    return this.#chosen.get(key);
  }

  /** Store a chosen version. Null removes the choice, so that the model's own translation is used. */
  set(key: string, version: Version | null): void {
    this.#chosen.delete(key); // a map is in the order of insertion, and the newest choice must be the last
    if (version) this.#chosen.set(key, version);
    this.store.setItem(CHOICES, JSON.stringify([...this.#chosen].slice(-MAX_CHOICES)));
  }
}
