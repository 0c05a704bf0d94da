/** How long the page takes to answer, as performance measures `jumok:hover` and `jumok:change`. */

let begun: { what: string; at: number } | null = null;

export function asked(what: "hover" | "change"): void {
  begun = { what, at: performance.now() };
}

/** What was asked for is drawn. */
export function answered(): void {
  if (begun) performance.measure(`jumok:${begun.what}`, { start: begun.at, end: performance.now() });
  begun = null;
}
