/** Formulas of "Attention is all you need" that the page draws by itself. */

import type { Training } from "./format";

/** Sine and cosine of a place (section 3.5). */
export function sine(place: number, dimension: number, width: number): number {
  const angle = place / 10000 ** ((2 * Math.floor(dimension / 2)) / width);
  return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
}

/** The learning rate of an update, as `jumok.training.schedule` has it for a run of one plan. */
export function learningRate(step: number, { schedule, learning_rate: peak, warmup, steps }: Training): number {
  if (step <= warmup) return (peak * step) / warmup;
  if (schedule === "inverse-sqrt") return peak * Math.sqrt(Math.max(warmup, 1) / step);
  if (schedule === "cosine") return (peak * (1 + Math.cos((Math.PI * (step - warmup)) / Math.max(steps - warmup, 1)))) / 2;
  return peak;
}
