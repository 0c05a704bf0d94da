/** Measures response times of the page. The performance entries of the browser with the names `jumok:hover` and `jumok:change` contain
 * them. */

let current: { action: string; start: number } | null = null;

export function startTiming(action: "hover" | "change"): void {
  current = { action, start: performance.now() };
}

/** Call this when the result has been drawn. */
export function endTiming(): void {
  if (current) performance.measure(`jumok:${current.action}`, { start: current.start, end: performance.now() });
  current = null;
}
