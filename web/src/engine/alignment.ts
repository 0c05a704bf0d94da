/** Reads word alignments from cross-attention, as in src/jumok/inference/alignment/. */

import { NO_WORD } from "./words";
import type { SiteWeights } from "./model";

/** How word alignments are read from cross-attention: from the average weights of some heads. */
export interface ReadOut {
  /** The heads that are averaged, each as [layer, head]. */
  heads: [number, number][];
  /** 0 if the links of a token are read at the step that writes the token. 1 if they are read one step later, when the token is the input. */
  shift: number;
  /** If this is a number, each source word is also linked to the target word with the largest weight, provided this weight is larger than
   * this number. If it is null, each target word has only one link. */
  min_source_weight?: number | null;
}

export interface WordAlignment {
  /** The name of the read-out, or of the method that combines both directions. */
  name: string;
  heads: [number, number][];
  shift: number;
  method: string;
  /** In Pharaoh's format: see `pharaoh`. */
  links: string;
}

/** A link between two words: [source word, target word]. */
type Link = [number, number];

/** The read-out of a model without a read-out of its own: all heads of the second-to-last layer. */
export function defaultReadOut(layers: number, heads: number): ReadOut {
  const layer = Math.max(0, layers - 2);
  return { heads: Array.from({ length: heads }, (_, head) => [layer, head]), shift: 0 };
}

/** The average weights between words over the heads of a read-out, with the axes (target word, source word). `sourceWords` and `targetWords`
 * contain the index of the word of each token, or `NO_WORD`. */
function wordWeights({ shape, values }: SiteWeights, { heads, shift }: ReadOut, sourceWords: readonly number[], targetWords: readonly number[]): number[][] {
  const lastWord = Math.max(NO_WORD, ...sourceWords);
  const keyWords = [...sourceWords, lastWord]; // `</s>` counts as part of the last word
  const result = Array.from({ length: Math.max(NO_WORD, ...targetWords) + 1 }, () => new Array<number>(lastWord + 1).fill(0));
  targetWords.forEach((word, token) => {
    if (word === NO_WORD) return;
    const numTokens = targetWords.filter((other) => other === word).length;
    for (const [layer, head] of heads) {
      const rowStart = ((layer * shape[1] + head) * shape[2] + token + shift) * shape[3];
      keyWords.forEach((key, i) => {
        if (key !== NO_WORD) result[word][key] += values[rowStart + i] / heads.length / numTokens;
      });
    }
  });
  return result;
}

const argmax = (values: readonly number[]) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

/** Link each target word to the source word with the largest weight. Target words whose weights are all 0 have no link. */
function forwardLinks(weights: readonly number[][]): Link[] {
  return weights.flatMap((row, target): Link[] => (row.some((weight) => weight > 0) ? [[argmax(row), target]] : []));
}

/** Link each source word to the target word with the largest weight, if this weight is above `minWeight`. */
function backwardLinks(weights: readonly number[][], minWeight = 0): Link[] {
  return (weights[0] ?? []).flatMap((_, source): Link[] => {
    const column = weights.map((row) => row[source]);
    return column.some((weight) => weight > minWeight) ? [[source, argmax(column)]] : [];
  });
}

const isSameLink = (a: Link, b: Link) => a[0] === b[0] && a[1] === b[1];
const includes = (links: readonly Link[], link: Link) => links.some((other) => isSameLink(other, link));
const compareByTarget = (a: Link, b: Link) => a[1] - b[1] || a[0] - b[0];
/** Whether at least one of the two words of a link has no link yet. */
const hasUnlinkedWord = ([source, target]: Link, links: readonly Link[]) =>
  links.every(([linkedSource]) => linkedSource !== source) || links.every(([, linkedTarget]) => linkedTarget !== target);

/** Steps to the neighbours of a link, as [target, source], in Koehn's order: the four sides, then the four corners. */
const NEIGHBOURS = [[-1, 0], [0, -1], [1, 0], [0, 1], [-1, -1], [-1, 1], [1, -1], [1, 1]];

/** Combine the links of both directions with the heuristic grow-diag-final of Koehn et al. 2003. */
export function growDiagonalFinal(forward: readonly Link[], backward: readonly Link[]): Link[] {
  const union = [...forward, ...backward.filter((link) => !includes(forward, link))].sort(compareByTarget);
  const links = forward.filter((link) => includes(backward, link));
  for (let hasGrown = true; hasGrown; ) {
    hasGrown = false;
    for (const link of union) {
      if (!includes(links, link)) continue;
      for (const [targetStep, sourceStep] of NEIGHBOURS) {
        const neighbour: Link = [link[0] + sourceStep, link[1] + targetStep];
        if (!includes(union, neighbour) || includes(links, neighbour) || !hasUnlinkedWord(neighbour, links)) continue;
        links.push(neighbour);
        hasGrown = true;
      }
    }
  }
  for (const direction of [forward, backward])
    for (const link of [...direction].sort(compareByTarget)) if (hasUnlinkedWord(link, links)) links.push(link);
  return links;
}

/** The links in Pharaoh's format, for example "0-0 1-2". */
function pharaoh(links: readonly Link[]): string {
  return [...links].sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([source, target]) => `${source}-${target}`).join(" ");
}

/** The alignments of several read-outs. The first read-out is the read-out of the model, or the default if the model has none.
 * `sourceWords` and `targetWords` contain the index of the word of each token, or `NO_WORD`. */
export function alignments(weights: SiteWeights, modelReadOut: ReadOut | null, sourceWords: readonly number[], targetWords: readonly number[]): WordAlignment[] {
  const [layers, heads] = weights.shape;
  const mainReadOut = modelReadOut ?? defaultReadOut(layers, heads);
  const allHeads = Array.from({ length: layers * heads }, (_, i): [number, number] => [Math.floor(i / heads), i % heads]);
  const headsOfLayer = (layer: number) => allHeads.filter(([other]) => other === layer);
  const readOuts: [string, ReadOut][] = [
    ["read-out", mainReadOut],
    ["shifted", { heads: mainReadOut.heads, shift: 1 - mainReadOut.shift }],
    ["mean", { heads: allHeads, shift: 0 }],
    ["mean, shifted", { heads: allHeads, shift: 1 }],
    ...Array.from({ length: layers }, (_, layer): [string, ReadOut] => [`layer ${layer}`, { heads: headsOfLayer(layer), shift: 0 }]),
    ...allHeads.map(([layer, head]): [string, ReadOut] => [`layer ${layer}, head ${head}`, { heads: [[layer, head]], shift: 0 }]),
  ];
  return readOuts.flatMap(([name, { min_source_weight: minSourceWeight = null, ...readOut }]) => {
    const words = wordWeights(weights, readOut, sourceWords, targetWords);
    const forward = forwardLinks(words);
    const additional = minSourceWeight === null ? [] : backwardLinks(words, minSourceWeight).filter((link) => !includes(forward, link));
    const method = minSourceWeight === null ? "argmax" : "argmax in both directions";
    const result: WordAlignment[] = [{ name, ...readOut, method, links: pharaoh([...forward, ...additional]) }];
    if (name !== "read-out") return result;
    const backward = backwardLinks(words);
    const symmetric = { intersection: forward.filter((link) => includes(backward, link)), "grow-diagonal-final": growDiagonalFinal(forward, backward) };
    return [...result, ...Object.entries(symmetric).map(([method, links]) => ({ name: method, ...readOut, method, links: pharaoh(links) }))];
  });
}
