/** What the page offers to save: the numbers of the panel that is shown, and files of the page itself. */

import { untrack } from "svelte";

import type { Explanation } from "./format";

/** The numbers of a panel. */
export interface Numbers {
  /** The name of the files, without an ending. */
  name: string;
  /** What these numbers are; shown if there are others beside them. */
  label?: string;
  /** A table: the first row has the names of the columns. */
  table: () => (string | number)[][];
  /** What the numbers are of, for the first lines of a CSV file. */
  comments?: () => Record<string, string>;
  /** The same as JSON values; without it, the table. */
  data?: () => unknown;
}

class Shared {
  /** Those of all parts of the panel, in the order of their names. */
  numbers = $state.raw<Numbers[]>([]);
  /** While the panel Compare is shown, the explanations that it compares: a saved page has all of them. */
  compared = $state.raw<Explanation[]>([]);

  /** Offer the numbers of a panel or of a part of it while it is shown: call it in an effect. */
  offer(numbers: Numbers): () => void {
    // An effect that reads what it sets would run for ever.
    untrack(() => (this.numbers = [...this.numbers, numbers].sort((a, b) => (a.name < b.name ? -1 : 1))));
    return () => (this.numbers = untrack(() => this.numbers).filter((other) => other !== numbers));
  }
}

export const shared = new Shared();
