/** Writes the view into the address: a new entry of the browser's history for each panel and sentence, so that Back leads there.
 *
 * Browsers limit how often the address may change (Safari: 100 times in 30 seconds). After MAX_CHANGES within WINDOW_MS, the page
 * writes the address only once the view has been stable for DELAY_MS. */

const [MAX_CHANGES, WINDOW_MS, DELAY_MS] = [50, 30_000, 700];

export class AddressBar {
  /** A page in a notebook's iframe has no address to write to. */
  #exists = location.protocol !== "about:";
  #historyKey: string | null = null;
  /** The address when it was last written or found right. Another one is due to Back, Forward or the reader, and its entry is mended in place. */
  #address = "";
  #times: number[] = [];

  /** Write the address of a view; views with another `historyKey` are another entry of the history. The returned function cancels a delayed write. */
  write(address: string, historyKey: string): (() => void) | undefined {
    if (!this.#exists || address === location.hash) {
      this.#historyKey = historyKey; // the view comes from the address
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
    if (this.#historyKey === null || this.#historyKey === historyKey || this.#address !== location.hash) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.#historyKey = historyKey;
    this.#address = location.hash;
  }
}
