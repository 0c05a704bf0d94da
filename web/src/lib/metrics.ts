/** Reads the lines of a run's metrics.jsonl. */

import { isSite, weights, type Packed, type Site } from "./format";
import { isRounded, mapFrom, type AttentionMap } from "./maps";

export type MetricsLine = Record<string, unknown>;

export interface Sample {
  source: string;
  reference: string;
  hypothesis: string;
}

/** One validation: its scores, sample translations and attention map. */
export interface Validation {
  step: number;
  scores: [string, number][];
  samples: Sample[];
  attention: { site: Site; map: AttentionMap } | null;
}

/** The scores that a validation may have, and their labels. */
export const SCORES = { bleu: "BLEU", chrf: "chrF", perplexity: "perplexity", accuracy: "accuracy" };

/** The (step, value) points of one metric. */
export function metricPoints(lines: MetricsLine[], kind: string, name: string): [number, number][] {
  return lines.filter((line) => line.kind === kind && typeof line[name] === "number").map((line) => [line.step as number, line[name] as number]);
}

/** The training loss in nats per token. It is computed from the `perplexity` of a line, because this excludes label smoothing and so can
 * be compared with the validation loss. Lines of older runs have only `loss`, which includes label smoothing. */
export function trainingLoss(lines: MetricsLine[]): [number, number][] {
  const perplexities = metricPoints(lines, "train", "perplexity");
  return perplexities.length ? perplexities.map(([step, perplexity]) => [step, Math.log(perplexity)]) : metricPoints(lines, "train", "loss");
}

/** The last update in the metrics of several runs; at least 1. */
export function lastUpdate(runs: MetricsLine[][]): number {
  return runs.flat().reduce((last, { step }) => (typeof step === "number" ? Math.max(last, step) : last), 1);
}

/** A line of a chart over the updates of a run. */
export interface ChartLine {
  name: string;
  points: [number, number][];
  /** Whether the line has the second colour. */
  secondary?: boolean;
  /** If the line belongs to another run: the index of this run, which determines the dash pattern of the line. */
  run?: number;
}

/** The dash patterns of other runs. They can be distinguished without colour. If there are more runs, the patterns repeat. */
export const DASHES = ["9 4", "2 4", "12 4 2 4", "6 3 2 3 2 3", "1 7", "18 5"];

/** A metric that is drawn in a chart, and the function that reads its points from the metrics of a run. */
interface ChartedMetric {
  name: string;
  points: (metrics: MetricsLine[]) => [number, number][];
}

/** One line for each metric of this run and of other runs. Metrics alternate between two colours, and each run has its dash pattern. */
export function chartLines(metrics: ChartedMetric[], own: MetricsLine[], others: { name: string; metrics: MetricsLine[] }[]): ChartLine[] {
  return metrics.flatMap(({ name, points }, i) => {
    const secondary = i % 2 === 1;
    const otherLines = others.map((run, index) => ({ name: `${name}, ${run.name}`, points: points(run.metrics), secondary, run: index }));
    return [{ name, points: points(own), secondary }, ...otherLines.filter((line) => line.points.length)];
  });
}

/** The validations that have samples or a map. Malformed fields are left out. */
export function parseValidations(lines: MetricsLine[]): Validation[] {
  return lines
    .filter((line) => line.kind === "validation" && typeof line.step === "number")
    .map((line) => ({
      step: line.step as number,
      scores: Object.entries(SCORES).flatMap(([name, label]): [string, number][] => (typeof line[name] === "number" ? [[label, line[name]]] : [])),
      samples: Array.isArray(line.samples) ? line.samples.filter(isSample) : [],
      attention: parseAttention(line.attention),
    }))
    .filter(({ samples, attention }) => samples.length || attention);
}

function isSample(value: unknown): value is Sample {
  return isObject(value) && ["source", "reference", "hypothesis"].every((name) => typeof value[name] === "string");
}

function parseAttention(value: unknown): Validation["attention"] {
  if (!isObject(value) || !isObject(value.weights) || !isStringArray(value.queries) || !isStringArray(value.keys)) return null;
  const { site, queries, keys } = value;
  const packed = value.weights as unknown as Packed;
  if (!isSite(site as string) || String(packed.shape) !== String([queries.length, keys.length])) return null;
  try {
    return { site: site as Site, map: mapFrom(weights(packed), queries, keys, isRounded(packed)) };
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function isStringArray(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** The largest weight of each row, averaged over the rows. */
export function sharpness(map: AttentionMap): number {
  let total = 0;
  for (let row = 0; row < map.rows; row++) total += Math.max(0, ...map.values.subarray(row * map.columns, (row + 1) * map.columns));
  return total / Math.max(1, map.rows);
}
