/** What the page offers to save: the numbers of the panel that is shown, and files of the page itself. */

import type { Explanation } from "./format";

/** The numbers of a panel. */
export interface Numbers {
  /** The name of the files, without an ending. */
  name: string;
  /** A table: the first row has the names of the columns. */
  table: () => (string | number)[][];
  /** What the numbers are of, for the first lines of a CSV file. */
  comments?: () => Record<string, string>;
  /** The same as JSON values; without it, the table. */
  data?: () => unknown;
}

class Shared {
  numbers = $state.raw<Numbers | null>(null);
  /** While the panel Compare is shown, the explanations that it compares: a saved page has all of them. */
  compared = $state.raw<Explanation[]>([]);

  /** Offer the numbers of a panel while it is shown: call it in an effect. */
  offer(numbers: Numbers): () => void {
    this.numbers = numbers;
    return () => {
      if (this.numbers === numbers) this.numbers = null;
    };
  }
}

export const shared = new Shared();
