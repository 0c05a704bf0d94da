/** Arrays as base64, as in src/jumok/analysis/packing.py: weights in two bytes each, other numbers as float32. */

import type { Packed, Step } from "../lib/format";
import { base64FromBytes } from "./model_file";

const FINE_STEPS = 254;
const DECIMALS = 1e5;

/** Round a number to five decimals; one that is not finite becomes null. */
export function rounded(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * DECIMALS) / DECIMALS : null;
}

/** Non-negative weights (…, query, key), with four decimals. */
export function packWeights(weights: ArrayLike<number>, shape: number[]): Packed {
  const clean = Float64Array.from(weights, (weight) => (Number.isFinite(weight) && weight > 0 ? weight : 0));
  const scale = clean.reduce((largest, weight) => Math.max(largest, weight), 1);
  const [queries, keys] = shape.slice(-2);
  const causal = queries === keys && clean.every((weight, i) => weight === 0 || i % keys <= Math.floor(i / keys) % queries);
  const stored = causal ? clean.filter((_, i) => i % keys <= Math.floor(i / keys) % queries) : clean;
  const codes = new Uint8Array(stored.length);
  const fine = new Int8Array(stored.length);
  stored.forEach((weight, i) => {
    const level = 255 * Math.sqrt(weight / scale);
    codes[i] = Math.round(level);
    fine[i] = Math.round(FINE_STEPS * (level - codes[i]));
  });
  return { shape, layout: causal ? "causal" : "full", scale, codes: base64FromBytes(codes), fine: base64FromBytes(new Uint8Array(fine.buffer)) };
}

export function packFloats(values: Float32Array, shape: number[]): Pick<Step, "shape" | "float32"> {
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  values.forEach((value, i) => view.setFloat32(4 * i, value, true));
  return { shape, float32: base64FromBytes(bytes) };
}
