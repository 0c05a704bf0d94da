/** Formulas that the page computes: the position encoding of "Attention is all you need" and learning rate schedules. */

import type { Training } from "./format";

/** The sinusoidal position encoding (section 3.5). */
export function sinusoid(position: number, dimension: number, width: number): number {
  const angle = position / 10000 ** ((2 * Math.floor(dimension / 2)) / width);
  return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
}

/** How much of the schedule after the warm-up is done at a step, from 0 to 1, as in `Plan.progress` of src/jumok/training/loop/schedule.py. */
function progress(step: number, { warmup, steps, plan = [[0, steps]] }: Training): number {
  /** The share that is done at the step `from`. */
  let [share, from] = [0, warmup];
  plan.forEach(([, total], i) => {
    const end = Math.min(plan[i + 1]?.[0] ?? step, step);
    if (total === null || end <= from) return;
    share += ((1 - share) * (end - from)) / Math.max(total - from, 1);
    from = end;
  });
  return Math.min(share, 1);
}

/** The learning rate of an update, as in `jumok.training.loop.schedule`. Phases of further training are ignored, because the facts of a
 * model do not contain them. */
export function learningRate(step: number, training: Training): number {
  const { schedule, learning_rate: peak, warmup } = training;
  if (step <= warmup) return (peak * step) / warmup;
  if (schedule === "inverse-sqrt") return peak * Math.sqrt(Math.max(warmup, 1) / step);
  if (schedule === "cosine") return (peak * (1 + Math.cos(Math.PI * progress(step, training)))) / 2;
  return peak;
}
