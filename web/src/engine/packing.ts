/** Packs arrays as base64, as in src/jumok/analysis/packing.py. A weight takes two bytes, other numbers are float32. */

import type { Packed, Step } from "../lib/format";
import { base64FromBytes } from "./model_file";

/** A weight is stored as the level 255 · √(weight / scale). The first byte is the level rounded to an integer. The second byte is the rest,
 * which lies between −0.5 and 0.5, in units of 1 / `FINE_STEPS`. */
const FINE_STEPS = 254;
/** Ten to the power of the number of decimals that `rounded` keeps. */
const DECIMAL_FACTOR = 1e5;

/** Round a number to five decimals. Null if the number is not finite. */
export function rounded(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * DECIMAL_FACTOR) / DECIMAL_FACTOR : null;
}

/** Pack weights with the axes (…, query, key). The error is at most 0.00002, times the largest weight if a weight is above 1. Weights that
 * are negative or not finite become 0. */
export function packWeights(weights: ArrayLike<number>, shape: number[]): Packed {
  const clean = Float64Array.from(weights, (weight) => (Number.isFinite(weight) && weight > 0 ? weight : 0));
  const scale = clean.reduce((largest, weight) => Math.max(largest, weight), 1);
  const [queries, keys] = shape.slice(-2);
  const isVisible = (i: number) => i % keys <= Math.floor(i / keys) % queries; // the key is not after the query
  const isCausal = queries === keys && clean.every((weight, i) => weight === 0 || isVisible(i));
  const stored = isCausal ? clean.filter((_, i) => isVisible(i)) : clean;
  const codes = new Uint8Array(stored.length);
  const fine = new Int8Array(stored.length);
  stored.forEach((weight, i) => {
    const level = 255 * Math.sqrt(weight / scale);
    codes[i] = Math.round(level);
    fine[i] = Math.round(FINE_STEPS * (level - codes[i]));
  });
  const fineBytes = new Uint8Array(fine.buffer);
  return { shape, layout: isCausal ? "causal" : "full", scale, codes: base64FromBytes(codes), fine: base64FromBytes(fineBytes) };
}

export function packFloats(values: Float32Array, shape: number[]): Pick<Step, "shape" | "float32"> {
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  values.forEach((value, i) => view.setFloat32(4 * i, value, true));
  return { shape, float32: base64FromBytes(bytes) };
}
