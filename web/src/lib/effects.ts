/** The effect of silencing each head on each word of the translation. */

import { floats, type Explanation, type Site } from "./format";
import { mapFrom, type AttentionMap } from "./maps";

const END = "</s>";

/** The columns of `headWordEffects`: the target words, then `</s>` if the translation ended, then the tokens that belong to no word.
 * `labels` has the label of each column, and `steps` has the steps that write it. */
function wordSteps({ target, ended }: Explanation): { labels: string[]; steps: number[][] } {
  const steps: number[][] = target.words.map(() => []);
  const rest: number[] = [];
  target.word_of_token.forEach((word, step) => (word < 0 ? rest : steps[word]).push(step));
  const end = ended ? [[target.tokens.length]] : [];
  return {
    labels: [...target.words, ...end.map(() => END), ...rest.map((step) => target.tokens[step].replaceAll("▁", "·"))],
    steps: [...steps, ...end, ...rest.map((step) => [step])],
  };
}

/** One row per head of a site, one column per target word: the change in the word's log-probability without the head. */
export function headWordEffects(explanation: Explanation, site: Site): AttentionMap | null {
  const packed = explanation.statistics[site]?.token_effect;
  if (!packed) return null;
  const [layers, heads, count] = packed.shape;
  const values = floats(packed);
  const { labels, steps } = wordSteps(explanation);
  const table = new Float32Array(layers * heads * labels.length);
  const names: string[] = [];
  for (let row = 0; row < layers * heads; row++) {
    names.push(`${Math.floor(row / heads)} · ${row % heads}`);
    steps.forEach((positions, column) => {
      table[row * labels.length + column] = positions.reduce((sum, step) => sum + values[row * count + step], 0);
    });
  }
  const words = labels.map((_, column) => (column < explanation.target.words.length ? column : -1));
  return { ...mapFrom(table, names, labels), quantity: "nats", columnAxis: { side: "target", words, tokens: steps } };
}

/** The log-probability of each column of `headWordEffects`. */
export function wordLogProbs(explanation: Explanation): number[] {
  return wordSteps(explanation).steps.map((positions) => positions.reduce((sum, step) => sum + (explanation.log_probs[step] ?? 0), 0));
}

/** The head whose silencing lowers the probability of a column's word most, as [row, effect]. Null if no head lowers the probability
 * by more than a tenth. */
export function decisiveHead(map: AttentionMap, column: number): [number, number] | null {
  let best: [number, number] | null = null;
  for (let row = 0; row < map.rows; row++) {
    const effect = map.values[row * map.columns + column];
    if (effect < Math.log(0.9) && (!best || effect < best[1])) best = [row, effect];
  }
  return best;
}
