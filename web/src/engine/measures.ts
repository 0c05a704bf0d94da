/** Computes the norms of transformed value vectors, as in src/jumok/analysis/measures.py. */

import type { Measures } from "../lib/format";
import { concatenate, rowsOf } from "./arrays";
import { BEGIN, type Edit, type Model, type Probe } from "./model";
import type { MultiHead } from "./multi_head";
import { packWeights } from "./packing";
import { Recurrent } from "./recurrent";
import { Transformer } from "./transformer";

const norm = (vector: Float32Array) => Math.hypot(...vector);

/** For each site, the norms ‖f(x)‖ of the transformed value vectors (Kobayashi et al. 2020), with the axes (layer, head, key).
 * In a recurrent model, f(x) is the state of the encoder. */
export function valueNorms(model: Model, source: readonly number[], target: readonly number[], edit: Edit | null): Measures["value_norms"] {
  if (model instanceof Recurrent) {
    if (!model.sites.cross) return {};
    const states = rowsOf(model.begin(source, { edit }).encoded, model.architecture.encoder_width);
    return { cross: packWeights(states.map(norm), [1, 1, states.length]) };
  }
  if (!(model instanceof Transformer)) return {};
  const inputs: Float32Array[][] = model.encoder.map(() => []);
  const probe: Probe = {
    edit,
    onInput: (site, layer, position, _, normed) => {
      if (site === "encoder") inputs[layer][position] = normed;
    },
  };
  const state = model.begin(source, probe);
  for (const token of [BEGIN, ...target]) model.step(state, [token], probe);
  const [cache] = state.caches;
  const encoder = model.encoder.map(({ self: { attention } }, layer) => {
    const values = attention.value.apply(concatenate(inputs[layer]));
    return norms(attention, rowsOf(values, attention.value.outputs));
  });
  const decoder = model.decoder.map(({ self }, layer) => norms(self.attention, cache[layer].values));
  const cross = model.decoder.map(({ cross }, layer) => norms(cross.attention, state.sources[layer].values));
  const packed = (layers: Float32Array[], keys: number) => packWeights(concatenate(layers), [layers.length, layers[0].length / keys, keys]);
  return { encoder: packed(encoder, source.length + 1), decoder: packed(decoder, target.length + 1), cross: packed(cross, source.length + 1) };
}

/** The norms ‖v W_O‖ of each head and key, with the axes (head, key). The bias of W_O is left out, because it belongs to no head. */
function norms(attention: MultiHead, values: readonly Float32Array[]): Float32Array {
  const { heads, valueWidth, out } = attention;
  const bias = out.apply(new Float32Array(heads * valueWidth));
  const result = new Float32Array(heads * values.length);
  for (let head = 0; head < heads; head++) {
    const start = attention.groupOf(head) * valueWidth;
    values.forEach((value, key) => {
      /** The concatenated values of all heads: the value vector of this head, and zeros for all other heads. */
      const valueOfHead = new Float32Array(heads * valueWidth);
      valueOfHead.set(value.subarray(start, start + valueWidth), head * valueWidth);
      result[head * values.length + key] = norm(out.apply(valueOfHead).map((number, i) => number - bias[i]));
    });
  }
  return result;
}
