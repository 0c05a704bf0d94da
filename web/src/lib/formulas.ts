/** Formulas of "Attention is all you need" that the page draws by itself. */

import type { Training } from "./format";

/** Sine and cosine of a place (section 3.5). */
export function sine(place: number, dimension: number, width: number): number {
  const angle = place / 10000 ** ((2 * Math.floor(dimension / 2)) / width);
  return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
}

/** How much of the way from the warm-up's end to the last step has been gone, as `Plan.progress` has it. */
function progress(step: number, { warmup, steps, plan = [[0, steps]] }: Training): number {
  let [gone, here] = [0, warmup];
  plan.forEach(([, total], i) => {
    const end = Math.min(plan[i + 1]?.[0] ?? step, step);
    if (total === null || end <= here) return;
    gone += ((1 - gone) * (end - here)) / Math.max(total - here, 1);
    here = end;
  });
  return Math.min(gone, 1);
}

/** The learning rate of an update, as `jumok.training.schedule` has it. */
export function learningRate(step: number, training: Training): number {
  const { schedule, learning_rate: peak, warmup } = training;
  if (step <= warmup) return (peak * step) / warmup;
  if (schedule === "inverse-sqrt") return peak * Math.sqrt(Math.max(warmup, 1) / step);
  if (schedule === "cosine") return (peak * (1 + Math.cos(Math.PI * progress(step, training)))) / 2;
  return peak;
}
