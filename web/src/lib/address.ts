/** Writes the view into the address of the page, as its fragment. In this file, an address is such a fragment with its "#".
 *
 * A view with a new `historyKey` (for example, another panel or sentence) becomes an entry of the browser's history, to which the Back
 * button returns. Browsers limit how often the address may change (Safari: 100 times in 30 seconds). After MAX_CHANGES within WINDOW_MS,
 * the address is not written before the view has been stable for DELAY_MS. */

const [MAX_CHANGES, WINDOW_MS, DELAY_MS] = [50, 30_000, 700];

export class AddressBar {
  /** False in the iframe of a notebook: the address of such a page cannot be written. */
  #isWritable = location.protocol !== "about:";
  #historyKey: string | null = null;
  /** The address after the last call of `write`. If the browser's address differs, the reader has gone Back or Forward or has edited
   * the address. The next write then replaces that entry of the history instead of adding an entry. */
  #address = "";
  /** The times of the latest writes. */
  #times: number[] = [];

  /** Write the address of a view. If `historyKey` differs from the key of the last view, the view becomes a new entry of the history.
   * If the write is delayed, the result is a function that cancels it. Call this function when the view changes again. */
  write(address: string, historyKey: string): (() => void) | undefined {
    if (!this.#isWritable || address === location.hash) {
      this.#historyKey = historyKey; // the address already shows this view
      this.#address = location.hash;
      return;
    }
    this.#times = this.#times.filter((time) => performance.now() - time < WINDOW_MS);
    if (this.#times.length < MAX_CHANGES) {
      this.#write(address, historyKey);
      return;
    }
    const timer = setTimeout(() => this.#write(address, historyKey), DELAY_MS);
    return () => clearTimeout(timer);
  }

  #write(address: string, historyKey: string): void {
    this.#times.push(performance.now());
    const replacesEntry = this.#historyKey === null || this.#historyKey === historyKey || this.#address !== location.hash;
    if (replacesEntry) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.#historyKey = historyKey;
    this.#address = location.hash;
  }
}
