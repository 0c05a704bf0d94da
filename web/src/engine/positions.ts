/** Position encodings, as in src/jumok/attention/positions.py. Some are added to embeddings, others are used inside the heads. */

import { dot } from "./arrays";
import type { TransformerArchitecture, Weights } from "./model_file";

const BASE = 10000;
const BUCKETS = 32;
const MAX_BUCKET_DISTANCE = 128;

/** Returns the vector that is added to the embedding at a position; zeros if positions are only used inside the heads. */
export type AddedPositions = (position: number) => Float32Array;

export function addedPositions({ positions, width }: TransformerArchitecture, weights: Weights, embedding: string): AddedPositions {
  if (positions === "learned") return learned(weights, `${embedding}.positions.table`);
  if (positions !== "sinusoidal" && positions !== "marian") {
    const zero = new Float32Array(width);
    return () => zero;
  }
  const pairs = Math.ceil(width / 2);
  const exponent = positions === "sinusoidal" ? (pair: number) => (2 * pair) / width : (pair: number) => pair / Math.max(1, pairs - 1);
  const table: Float32Array[] = [];
  return (position) =>
    (table[position] ??= Float32Array.from({ length: width }, (_, column) => {
      const angle = position / BASE ** exponent(column >> 1);
      return column % 2 ? Math.cos(angle) : Math.sin(angle);
    }));
}

function learned(weights: Weights, name: string): AddedPositions {
  const table = weights.get(name);
  const [positions, width] = weights.shape(name);
  return (position) => {
    if (position >= positions) throw new Error(`Learned positions end at ${positions} tokens. Received: ${position + 1} tokens. Give a shorter sentence.`);
    return table.subarray(position * width, (position + 1) * width);
  };
}

/** Positions inside the heads of a self-attention. */
export interface HeadPositions {
  /** Rotate queries or keys by their position, in place. `states` has the vectors of all heads (queries) or groups (keys), each with
   * `width` elements. */
  rotate(states: Float32Array, width: number, position: number): void;
  /** Returns the number that is added to the score of a query with a key. The query begins at the index `start` of `queries`. `distance` is
   * the position of the key minus the position of the query. Null if nothing is added. */
  bias: ((head: number, queries: Float32Array, start: number, distance: number) => number) | null;
}

export const NO_POSITIONS: HeadPositions = { rotate: () => undefined, bias: null };

/** The positions of one self-attention, whose tensors begin with `name`. */
export function headPositions(architecture: TransformerArchitecture, weights: Weights, name: string, causal: boolean): HeadPositions {
  const { positions, heads, key_width: width } = architecture;
  if (positions === "rotary") return { rotate, bias: null };
  if (positions === "alibi") {
    const slopes = alibiSlopes(heads).map(Math.fround);
    // For keys after the query, the heads have the slopes in reverse order, so that an encoder can distinguish left from right.
    return { ...NO_POSITIONS, bias: (head, _, __, distance) => -slopes[distance > 0 ? heads - 1 - head : head] * Math.abs(distance) };
  }
  if (positions === "relative-bias") {
    const table = weights.get(`${name}.positions.table`);
    return { ...NO_POSITIONS, bias: (head, _, __, distance) => table[head * BUCKETS + relativeBucket(distance, BUCKETS, MAX_BUCKET_DISTANCE, !causal)] };
  }
  if (positions === "relative-keys") {
    const table = weights.get(`${name}.positions.table`);
    const vectors = weights.shape(`${name}.positions.table`)[1];
    const maxDistance = (vectors - 1) / 2;
    return {
      ...NO_POSITIONS,
      bias: (head, queries, start, distance) => {
        const vector = Math.max(-maxDistance, Math.min(maxDistance, distance)) + maxDistance;
        return dot(queries, start, table, (head * vectors + vector) * width, width) / Math.sqrt(width);
      },
    };
  }
  return NO_POSITIONS;
}

/** Rotary positions: elements i and i + width/2 of a head are the coordinates of a point, which is rotated around the origin. */
function rotate(states: Float32Array, width: number, position: number): void {
  const half = width / 2;
  for (let i = 0; i < half; i++) {
    const angle = position / BASE ** ((2 * i) / width);
    const [cosine, sine] = [Math.fround(Math.cos(angle)), Math.fround(Math.sin(angle))];
    for (let start = 0; start < states.length; start += width) {
      const [left, right] = [states[start + i], states[start + i + half]];
      states[start + i] = left * cosine - right * sine;
      states[start + i + half] = right * cosine + left * sine;
    }
  }
}

/** The slopes of ALiBi, one per head. If the number of heads is not a power of two, the remaining slopes are taken from those of the
 * next higher power of two. */
export function alibiSlopes(heads: number): number[] {
  const power = 2 ** Math.floor(Math.log2(heads));
  const slopes = Array.from({ length: power }, (_, head) => 2 ** ((-8 * (head + 1)) / power));
  const remaining = Array.from({ length: heads - power }, (_, i) => 2 ** ((-8 * (2 * i + 1)) / (2 * power)));
  return [...slopes, ...remaining];
}

/** The bucket of a distance, as in T5. Each small distance has its own bucket. Larger distances share buckets: the index of the bucket grows
 * with the logarithm of the distance. From `maxDistance` on, all distances have the last bucket. */
export function relativeBucket(distance: number, buckets: number, maxDistance: number, bidirectional: boolean): number {
  const first = bidirectional && distance > 0 ? buckets / 2 : 0;
  const count = bidirectional ? buckets / 2 : buckets;
  const gap = bidirectional ? Math.abs(distance) : Math.max(0, -distance);
  const exact = count / 2;
  if (gap < exact) return first + gap;
  const growth = Math.log(gap / exact) / Math.log(maxDistance / exact);
  return first + exact + Math.min(Math.floor(growth * (count - exact)), count - exact - 1);
}
