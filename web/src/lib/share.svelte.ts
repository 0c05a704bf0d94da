/** The data that the menu “Share” can save: the numbers of the current panel as a table or JSON, and the explanations that a saved copy of
 * the page contains. */

import { untrack } from "svelte";

import type { Explanation } from "./format";

/** The numbers of a panel or of a part of it. */
export interface Numbers {
  /** The name of the saved files, without extension. */
  name: string;
  /** A description of the numbers. It is shown if the panel offers several sets of numbers. */
  label?: string;
  /** The numbers as a table. The first row has the names of the columns. */
  table: () => (string | number)[][];
  /** The model, sentence etc. of the numbers, for the first lines of a CSV file. */
  comments?: () => Record<string, string>;
  /** The same numbers as JSON values. Default: the table. */
  data?: () => unknown;
}

class Shared {
  /** The numbers of all parts of the panel, sorted by name. */
  numbers = $state.raw<Numbers[]>([]);
  /** While the panel Compare is shown: the explanations that it compares. A saved page contains all of them. */
  compared = $state.raw<Explanation[]>([]);

  /** Offer the numbers of a panel or of a part of it while it is shown. Call this method in an effect of Svelte: it returns the cleanup
   * function. */
  offer(numbers: Numbers): () => void {
    // `untrack`, because an effect that reads a state and sets the same state would run forever.
    untrack(() => (this.numbers = [...this.numbers, numbers].sort((a, b) => (a.name < b.name ? -1 : 1))));
    return () => (this.numbers = untrack(() => this.numbers).filter((other) => other !== numbers));
  }
}

export const shared = new Shared();
