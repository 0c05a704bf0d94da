/** Multi-head attention with scaled dot products, as in src/jumok/attention/multi_head.py: Attention(Q, K, V) = softmax(QKᵀ / √d) V. */

import { dot, rowsOf, softmax } from "./arrays";
import type { Site, TransformerArchitecture, Weights } from "./model_file";
import { Projection, type Probe } from "./model";
import type { HeadPositions } from "./positions";

/** The keys and the values of all positions. The heads of a group share keys and values (`MultiHead.groupOf`). The vector of a position
 * contains the vectors of all groups, one after the other. */
export interface Memory {
  keys: Float32Array[];
  values: Float32Array[];
}

/** A query of one hypothesis. */
export interface QueryRow {
  /** The memory to which the query attends. */
  memory: Memory;
  /** The position of the query. */
  position: number;
  /** The index of the hypothesis in the state. In the encoder, which has no hypotheses, it is 0. */
  hypothesis: number;
}

export class MultiHead {
  readonly heads: number;
  readonly keyWidth: number;
  readonly valueWidth: number;
  readonly positions: HeadPositions;
  readonly query: Projection;
  readonly key: Projection;
  readonly value: Projection;
  readonly out: Projection;
  #headsPerGroup: number;

  constructor(architecture: TransformerArchitecture, weights: Weights, name: string, positions: HeadPositions) {
    this.heads = architecture.heads;
    this.keyWidth = architecture.key_width;
    this.valueWidth = architecture.value_width;
    this.positions = positions;
    this.query = new Projection(weights, `${name}.query`);
    this.key = new Projection(weights, `${name}.key`);
    this.value = new Projection(weights, `${name}.value`);
    this.out = new Projection(weights, `${name}.out`);
    this.#headsPerGroup = architecture.heads / architecture.groups;
  }

  /** The index of the group of a head. The heads of a group share keys and values. Often each head is a group of its own. */
  groupOf(head: number): number {
    return Math.floor(head / this.#headsPerGroup);
  }

  /** The keys and values of states (row, width) at these positions. */
  memory(states: Float32Array, positions: readonly number[]): Memory {
    const keys = rowsOf(this.key.apply(states), this.key.outputs);
    keys.forEach((row, i) => this.positions.rotate(row, this.keyWidth, positions[i]));
    return { keys, values: rowsOf(this.value.apply(states), this.value.outputs) };
  }

  /** The queries of states (row, width). With rotary positions, they are rotated by their positions. */
  queries(states: Float32Array, positions: readonly number[]): Float32Array[] {
    const rows = rowsOf(this.query.apply(states), this.query.outputs);
    rows.forEach((row, i) => this.positions.rotate(row, this.keyWidth, positions[i]));
    return rows;
  }

  /** The scores of a query with all keys of a memory, in one head. */
  scores(query: Float32Array, head: number, position: number, keys: readonly Float32Array[]): Float32Array {
    const [queryStart, keyStart] = [head * this.keyWidth, this.groupOf(head) * this.keyWidth];
    const scale = 1 / Math.sqrt(this.keyWidth);
    const { bias } = this.positions;
    const scores = new Float32Array(keys.length);
    for (let key = 0; key < keys.length; key++) {
      const product = dot(query, queryStart, keys[key], keyStart, this.keyWidth) * scale;
      scores[key] = bias ? product + bias(head, query, queryStart, key - position) : product;
    }
    return scores;
  }

  /** The concatenated contexts of all heads before W_O, with the axes (row, head × value width). `rows` has one query for each row of
   * `states`. */
  contexts(states: Float32Array, rows: readonly QueryRow[], site: Site, layer: number, probe: Probe): Float32Array {
    const queries = this.queries(states, rows.map(({ position }) => position));
    const contexts = new Float32Array(rows.length * this.heads * this.valueWidth);
    rows.forEach(({ memory, position, hypothesis }, i) => {
      for (let head = 0; head < this.heads; head++) {
        const weights = this.scores(queries[i], head, position, memory.keys);
        softmax(weights);
        const weightRow = { site, layer, head, query: position };
        probe.edit?.(weights, weightRow);
        probe.onWeights?.(weights, weightRow, hypothesis);
        const contextStart = (i * this.heads + head) * this.valueWidth;
        const valueStart = this.groupOf(head) * this.valueWidth;
        for (let key = 0; key < weights.length; key++) {
          const weight = weights[key];
          const value = memory.values[key];
          for (let column = 0; column < this.valueWidth; column++) contexts[contextStart + column] += weight * value[valueStart + column];
        }
      }
    });
    return contexts;
  }

  /** The output of the attention of states (row, width), with the axes (row, width). */
  attend(states: Float32Array, rows: readonly QueryRow[], site: Site, layer: number, probe: Probe): Float32Array {
    return this.out.apply(this.contexts(states, rows, site, layer, probe));
  }
}
