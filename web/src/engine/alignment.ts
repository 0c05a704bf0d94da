/** Word alignments read from cross-attention, as in src/jumok/inference/alignment/. */

import { NO_WORD } from "./words";
import type { SiteWeights } from "./model";

export interface ReadOut {
  heads: [number, number][];
  shift: number;
  /** Each source word also chooses a target word, if the weight between the two is above this; null: only target words choose. */
  min_source_weight?: number | null;
}

export interface WordAlignment {
  name: string;
  heads: [number, number][];
  shift: number;
  method: string;
  links: string;
}

/** [source word, target word]. */
type Link = [number, number];

/** The read-out of a model that has chosen none: the heads of the last layer but one. */
export function defaultReadOut(layers: number, heads: number): ReadOut {
  const layer = Math.max(0, layers - 2);
  return { heads: Array.from({ length: heads }, (_, head) => [layer, head]), shift: 0 };
}

/** The weights that a read-out has between words, (target word, source word). */
function wordWeights({ shape, values }: SiteWeights, { heads, shift }: ReadOut, sourceWords: readonly number[], targetWords: readonly number[]): number[][] {
  const lastWord = Math.max(NO_WORD, ...sourceWords);
  const keyWords = [...sourceWords, lastWord]; // `</s>` counts as part of the last word
  const result = Array.from({ length: Math.max(NO_WORD, ...targetWords) + 1 }, () => new Array<number>(lastWord + 1).fill(0));
  targetWords.forEach((word, token) => {
    if (word === NO_WORD) return;
    const tokensOfWord = targetWords.filter((other) => other === word).length;
    for (const [layer, head] of heads) {
      const row = ((layer * shape[1] + head) * shape[2] + token + shift) * shape[3];
      keyWords.forEach((key, i) => {
        if (key !== NO_WORD) result[word][key] += values[row + i] / heads.length / tokensOfWord;
      });
    }
  });
  return result;
}

const argmax = (values: readonly number[]) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

/** One link per target word that has any weight: to the source word with the largest one. */
function forwardLinks(weights: readonly number[][]): Link[] {
  return weights.flatMap((row, target): Link[] => (row.some((weight) => weight > 0) ? [[argmax(row), target]] : []));
}

/** One link per source word: to the target word with the largest weight, if that is above `least`. */
function backwardLinks(weights: readonly number[][], least = 0): Link[] {
  return (weights[0] ?? []).flatMap((_, source): Link[] => {
    const column = weights.map((row) => row[source]);
    return column.some((weight) => weight > least) ? [[source, argmax(column)]] : [];
  });
}

const same = (a: Link, b: Link) => a[0] === b[0] && a[1] === b[1];
const includes = (links: readonly Link[], link: Link) => links.some((other) => same(other, link));
const byTarget = (a: Link, b: Link) => a[1] - b[1] || a[0] - b[0];
const reachesUnlinked = ([source, target]: Link, links: readonly Link[]) => links.every(([i]) => i !== source) || links.every(([, j]) => j !== target);

/** Koehn's order, [target, source]: the four sides, then the corners. */
const NEIGHBOURS = [[-1, 0], [0, -1], [1, 0], [0, 1], [-1, -1], [-1, 1], [1, -1], [1, 1]];

export function growDiagonalFinal(forward: readonly Link[], backward: readonly Link[]): Link[] {
  const either = [...forward, ...backward.filter((link) => !includes(forward, link))].sort(byTarget);
  const links = forward.filter((link) => includes(backward, link));
  for (let growing = true; growing; ) {
    growing = false;
    for (const link of either) {
      if (!includes(links, link)) continue;
      for (const [targetStep, sourceStep] of NEIGHBOURS) {
        const neighbour: Link = [link[0] + sourceStep, link[1] + targetStep];
        if (!includes(either, neighbour) || includes(links, neighbour) || !reachesUnlinked(neighbour, links)) continue;
        links.push(neighbour);
        growing = true;
      }
    }
  }
  for (const direction of [forward, backward]) for (const link of [...direction].sort(byTarget)) if (reachesUnlinked(link, links)) links.push(link);
  return links;
}

/** Pharaoh's format: `0-0 1-2`. */
function pharaoh(links: readonly Link[]): string {
  return [...links].sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([source, target]) => `${source}-${target}`).join(" ");
}

/** The alignments of several read-outs, the model's own first. */
export function alignments(weights: SiteWeights, modelReadOut: ReadOut | null, sourceWords: readonly number[], targetWords: readonly number[]): WordAlignment[] {
  const [layers, heads] = weights.shape;
  const own = modelReadOut ?? defaultReadOut(layers, heads);
  const all = Array.from({ length: layers * heads }, (_, i): [number, number] => [Math.floor(i / heads), i % heads]);
  const readOuts: [string, ReadOut][] = [
    ["read-out", own],
    ["shifted", { heads: own.heads, shift: 1 - own.shift }],
    ["mean", { heads: all, shift: 0 }],
    ["mean, shifted", { heads: all, shift: 1 }],
    ...Array.from({ length: layers }, (_, layer): [string, ReadOut] => [`layer ${layer}`, { heads: all.filter(([other]) => other === layer), shift: 0 }]),
    ...all.map(([layer, head]): [string, ReadOut] => [`layer ${layer}, head ${head}`, { heads: [[layer, head]], shift: 0 }]),
  ];
  return readOuts.flatMap(([name, { min_source_weight: least = null, ...readOut }]) => {
    const words = wordWeights(weights, readOut, sourceWords, targetWords);
    const forward = forwardLinks(words);
    const chosenBack = least === null ? [] : backwardLinks(words, least).filter((link) => !includes(forward, link));
    const method = least === null ? "argmax" : "argmax in both directions";
    const result: WordAlignment[] = [{ name, ...readOut, method, links: pharaoh([...forward, ...chosenBack]) }];
    if (name !== "read-out") return result;
    const backward = backwardLinks(words);
    const both = { intersection: forward.filter((link) => includes(backward, link)), "grow-diagonal-final": growDiagonalFinal(forward, backward) };
    return [...result, ...Object.entries(both).map(([method, links]) => ({ name: method, ...readOut, method, links: pharaoh(links) }))];
  });
}
