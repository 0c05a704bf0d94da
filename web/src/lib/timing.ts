/** Response times of the page, stored as the browser's performance entries `jumok:hover` and `jumok:change`. */

let current: { action: string; start: number } | null = null;

export function startTiming(action: "hover" | "change"): void {
  current = { action, start: performance.now() };
}

/** Call when the result is drawn. */
export function endTiming(): void {
  if (current) performance.measure(`jumok:${current.action}`, { start: current.start, end: performance.now() });
  current = null;
}
