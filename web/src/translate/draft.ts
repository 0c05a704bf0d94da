/** What a tab remembers for a reload: the text with its languages and style, and the translations that the user chose. */

import type { Store } from "./storage";
import type { TranslationInput } from "./text";
import type { Version } from "./translation";

export interface Draft extends TranslationInput {
  tags: string[];
}

const [DRAFT, CHOICES] = ["jumok-draft", "jumok-choices"];
/** Of more choices, the oldest are not remembered. */
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

/** The style of a text that an address gives: that of the draft, if the address is of the same text. */
export function tagsOf({ source, target, text }: Partial<TranslationInput>, draft: Draft | null): string[] | undefined {
  return draft && draft.source === source && draft.target === target && draft.text === text ? draft.tags : undefined;
}

/** Translations that the user chose, by languages, tags and sentence. */
export class Choices {
  readonly #chosen: Map<string, Version>;

  constructor(private readonly store: Store) {
    const stored = parse(store.getItem(CHOICES));
    this.#chosen = new Map(Array.isArray(stored) ? (stored as [string, Version][]) : []);
  }

  get(key: string): Version | undefined {
    return this.#chosen.get(key);
  }

  /** Choose a version; null: the model's own. */
  set(key: string, version: Version | null): void {
    this.#chosen.delete(key); // the newest is the last
    if (version) this.#chosen.set(key, version);
    this.store.setItem(CHOICES, JSON.stringify([...this.#chosen].slice(-MAX_CHOICES)));
  }
}
