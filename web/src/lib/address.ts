/** Writes the view into the address: a new entry of the browser's history for each panel and sentence, so that Back leads there.
 *
 * Browsers limit how often the address may change (Safari: 100 times in 30 seconds). After MAX_CHANGES within WINDOW_MS, it is
 * written only once it has been stable for DELAY_MS. */

const [MAX_CHANGES, WINDOW_MS, DELAY_MS] = [50, 30_000, 700];

export class AddressBar {
  /** A page in a notebook's iframe has no address to write to. */
  #exists = location.protocol !== "about:";
  #place: string | null = null;
  #times: number[] = [];

  /** Write the address of a view; views of another `place` are another entry of the history. The result cancels a write that waits. */
  write(address: string, place: string): (() => void) | undefined {
    if (!this.#exists || address === location.hash) {
      this.#place = place; // the view comes from the address
      return;
    }
    this.#times = this.#times.filter((time) => performance.now() - time < WINDOW_MS);
    if (this.#times.length < MAX_CHANGES) {
      this.#write(address, place);
      return;
    }
    const timer = setTimeout(() => this.#write(address, place), DELAY_MS);
    return () => clearTimeout(timer);
  }

  #write(address: string, place: string): void {
    this.#times.push(performance.now());
    if (this.#place === null || this.#place === place) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.#place = place;
  }
}
