/** What a run tells of itself: the lines of its metrics.jsonl. */

import { isSite, weights, type Packed, type Site } from "./format";
import { isRounded, tableOf, type AttentionMap } from "./maps";

export type Line = Record<string, unknown>;

export interface Sample {
  source: string;
  reference: string;
  hypothesis: string;
}

/** One validation, as far as it can be shown. */
export interface Validation {
  step: number;
  scores: [string, number][];
  samples: Sample[];
  look: { site: Site; map: AttentionMap } | null;
}

/** The scores that a validation may have, as they are shown. */
export const SCORES = { bleu: "BLEU", chrf: "chrF", perplexity: "perplexity", accuracy: "accuracy" };

export function curve(lines: Line[], kind: string, name: string): [number, number][] {
  return lines.filter((line) => line.kind === kind && typeof line[name] === "number").map((line) => [line.step as number, line[name] as number]);
}

/** The validations that have something to look at. What is written otherwise than it should be is left out. */
export function validations(lines: Line[]): Validation[] {
  return lines
    .filter((line) => line.kind === "validation" && typeof line.step === "number")
    .map((line) => ({
      step: line.step as number,
      scores: Object.entries(SCORES).flatMap(([name, shown]): [string, number][] => (typeof line[name] === "number" ? [[shown, line[name]]] : [])),
      samples: Array.isArray(line.samples) ? line.samples.filter(isSample) : [],
      look: readLook(line.attention),
    }))
    .filter(({ samples, look }) => samples.length || look);
}

function isSample(told: unknown): told is Sample {
  return isObject(told) && ["source", "reference", "hypothesis"].every((name) => typeof told[name] === "string");
}

function readLook(told: unknown): Validation["look"] {
  if (!isObject(told) || !isObject(told.weights) || !isTexts(told.queries) || !isTexts(told.keys)) return null;
  const { site, queries, keys } = told;
  const packed = told.weights as unknown as Packed;
  if (!isSite(site as string) || String(packed.shape) !== String([queries.length, keys.length])) return null;
  try {
    return { site: site as Site, map: tableOf(weights(packed), queries, keys, isRounded(packed)) };
  } catch {
    return null;
  }
}

function isObject(told: unknown): told is Record<string, unknown> {
  return typeof told === "object" && told !== null;
}

function isTexts(told: unknown): told is string[] {
  return Array.isArray(told) && told.every((one) => typeof one === "string");
}

/** How sharp a map is: the largest weight of a row, on average. */
export function sharpness(map: AttentionMap): number {
  let total = 0;
  for (let row = 0; row < map.rows; row++) total += Math.max(0, ...map.values.subarray(row * map.columns, (row + 1) * map.columns));
  return total / Math.max(1, map.rows);
}
