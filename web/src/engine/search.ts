/** Beam search for one sentence, by the rules of src/jumok/inference/search/beam.py. A beam of 1 is greedy search. */

import { logSoftmax } from "./arrays";
import type { SearchSettings } from "./model_file";
import { BEGIN, END, PAD, type Edit, type Model, type Probe, type State } from "./model";

/** If more probability than this is masked, the rest gets a new softmax: 1 − lost has too few digits. */
const MAX_LOST = 0.5;
/** The smallest normal number of single precision: a coverage of 0 has no logarithm. */
const MIN_COVERAGE = 2 ** -126;

/** One continuation that a step considered; dead if its score is −∞. Most fields are columns of `search` in docs/explanation-format.md. */
export interface Candidate {
  /** The index of the candidate of the previous step that this one continues; −1 at the first step. */
  parent: number;
  /** The index of the continued hypothesis among the rows of the model's state. */
  slot: number;
  token: number;
  /** The sum of log-probabilities after masking, by which candidates are compared; the tokens of a prefix add 0. */
  score: number;
  /** The model's own sum of log-probabilities, with those of the prefix. */
  logProb: number;
  kept: boolean;
  finished: boolean;
  /** The number by which finished hypotheses are ranked: the score, divided by the length penalty. */
  ranking: number;
}

export interface Hypothesis {
  ids: number[];
  /** `ranking` of its last candidate. */
  score: number;
  logProb: number;
  ended: boolean;
}

/** What a step of the search did: its candidates that are alive. */
export interface SearchStep {
  candidates: Candidate[];
}

/** A hypothesis that the search continues. */
interface Slot {
  history: number[];
  score: number;
  logProb: number;
  /** The index of the candidate that this hypothesis continues, among those of the last step that are alive. */
  origin: number;
  coverage: Float64Array | null;
}

export interface SearchRequest {
  source: readonly number[];
  prefix: readonly number[];
  edit: Edit | null;
  onWeights?: Probe["onWeights"];
  onStep?: (step: SearchStep) => void;
}

export function maxLength(settings: SearchSettings, sourceLength: number, prefixLength: number): number {
  return Math.max(Math.trunc(sourceLength * settings.max_length_ratio) + settings.extra_tokens, prefixLength + 1);
}

function maxFinished({ beam, patience_factor: patience }: SearchSettings): number {
  return beam > 1 ? Math.max(1, Math.floor(beam * patience + 0.5)) : 1;
}

/** Yields after every step; returns the finished hypotheses, best first. */
export function* beamSearch(model: Model, settings: SearchSettings, request: SearchRequest): Generator<undefined, Hypothesis[]> {
  checkPrefix(request.prefix);
  const maxSteps = maxLength(settings, request.source.length, request.prefix.length);
  const needsCoverage = settings.coverage_penalty !== 0;
  const attended: Float64Array[] = [];
  const probe = coverageProbe(model, request, needsCoverage ? attended : null);
  let state: State = model.begin(request.source, { edit: request.edit });
  const finished: Hypothesis[] = [];
  let slots: Slot[] = [{ history: [], score: 0, logProb: 0, origin: -1, coverage: needsCoverage ? new Float64Array(request.source.length + 1) : null }];
  let bestEnded = false;
  for (let step = 0; slots.length; step++) {
    attended.length = 0;
    const rows = model.output.logProbs(model.step(state, slots.map(({ history }) => history.at(-1) ?? BEGIN), probe));
    slots.forEach(({ coverage }, row) => coverage?.forEach((sum, key) => (coverage[key] = sum + attended[row][key])));
    const candidates = findCandidates(rows, slots, settings, request.prefix);
    const atMaxLength = step + 1 === maxSteps;
    const isAlive = ({ score }: Candidate) => score > -Infinity;
    const hasEnded = (candidate: Candidate) => candidate.token === END && isAlive(candidate);
    candidates.forEach((candidate, i) => {
      candidate.ranking = rankingOf(candidate.score, step + 1, slots[candidate.slot].coverage, settings);
      candidate.finished = i < settings.beam && isAlive(candidate) && (candidate.token === END || atMaxLength);
    });
    finished.push(...finish(candidates.filter(({ finished }) => finished), slots));
    bestEnded ||= candidates[0]?.finished ?? false;
    const survivors = candidates.filter((candidate) => !hasEnded(candidate)).slice(0, settings.beam).filter(isAlive);
    const done = atMaxLength || hasEnough(finished.length, bestEnded, settings) || !survivors.length;
    const alive = candidates.filter(isAlive);
    slots = done ? [] : survivors.map((candidate) => continued(candidate, slots, alive.indexOf(candidate)));
    if (!done) for (const candidate of survivors) candidate.kept = true;
    request.onStep?.({ candidates: alive });
    if (slots.length) state = model.select(state, survivors.map(({ slot }) => slot));
    yield;
  }
  return finished.sort((a, b) => b.score - a.score);
}

function checkPrefix(prefix: readonly number[]): void {
  if (prefix.some((id) => [PAD, BEGIN, END].includes(id))) throw new Error(`A prefix must have no special tokens. Received: ${prefix.join(", ")}.`);
}

/** Collects, per row, the attention of the last layer to the source, averaged over its heads. */
function coverageProbe(model: Model, { edit, onWeights }: SearchRequest, attended: Float64Array[] | null): Probe {
  const cross = model.sites.cross;
  if (attended && !cross) throw new Error("The coverage penalty needs attention to the source, and this model has none.");
  if (!attended) return { edit, onWeights };
  return {
    edit,
    onWeights: (weights, weightRow, row) => {
      onWeights?.(weights, weightRow, row);
      if (weightRow.site !== "cross" || weightRow.layer !== cross!.layers - 1) return;
      const sum = (attended[row] ??= new Float64Array(weights.length));
      weights.forEach((weight, key) => (sum[key] += weight / cross!.heads));
    },
  };
}

/** The 2·beam best continuations, best first, the dead ones included. */
function findCandidates(rows: readonly Float32Array[], slots: readonly Slot[], settings: SearchSettings, prefix: readonly number[]): Candidate[] {
  const step = slots[0].history.length;
  const count = 2 * settings.beam;
  const make = (slot: number, token: number, score: number, logProb: number): Candidate => ({
    parent: slots[slot].origin,
    slot,
    token,
    score: Math.fround(score),
    logProb: Math.fround(slots[slot].logProb + logProb),
    kept: false,
    finished: false,
    ranking: 0,
  });
  if (step < prefix.length) return [make(0, prefix[step], 0, rows[0][prefix[step]])];
  const candidates = rows.flatMap((values, slot) => {
    const masked = maskDisallowed(values, slots[slot].history, settings);
    return largest(masked, count).map((token) => make(slot, token, slots[slot].score + masked[token], values[token]));
  });
  candidates.sort((a, b) => b.score - a.score);
  candidates.splice(count);
  // In the first step after a prefix, `</s>` is only taken if it is the best candidate.
  if (step === prefix.length && step) candidates.forEach((candidate, i) => i && candidate.token === END && (candidate.score = -Infinity));
  return candidates;
}

/** The indices of the largest values, largest first; of equals, the first. */
export function largest(values: Float32Array, count: number): number[] {
  const best: number[] = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && !(values[i] > values[best[count - 1]])) continue;
    let at = best.length;
    while (at > 0 && values[i] > values[best[at - 1]]) at--;
    best.splice(at, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

/** What search may choose from: −∞ for what is disallowed, renormalised. `<pad>` and `<s>` become −∞ in `values` too. */
function maskDisallowed(values: Float32Array, history: readonly number[], settings: SearchSettings): Float32Array {
  let lost = Math.exp(values[PAD]) + Math.exp(values[BEGIN]);
  values[PAD] = values[BEGIN] = -Infinity;
  const disallowed = new Set(repeating(history, settings.no_repeat_ngram_size));
  if (history.length < settings.min_length) disallowed.add(END);
  if (!disallowed.size) return values;
  for (const token of disallowed) lost += Math.exp(values[token]);
  const masked = values.slice();
  for (const token of disallowed) masked[token] = -Infinity;
  if (lost <= MAX_LOST) {
    const shift = Math.log1p(-lost);
    for (let i = 0; i < masked.length; i++) masked[i] -= shift;
  } else {
    if (masked.every((value) => value === -Infinity)) masked[END] = 0;
    logSoftmax(masked);
  }
  return masked;
}

/** The tokens that would repeat an n-gram of this size. */
function* repeating(history: readonly number[], size: number): Generator<number> {
  if (!size || history.length < size) return;
  const current = history.slice(history.length - size + 1);
  for (let start = 0; start + size <= history.length; start++)
    if (current.every((token, i) => history[start + i] === token)) yield history[start + size - 1];
}

function rankingOf(sum: number, steps: number, coverage: Float64Array | null, settings: SearchSettings): number {
  const ranking = Math.fround(sum / steps ** settings.length_penalty);
  if (!coverage) return ranking;
  return ranking + settings.coverage_penalty * coverage.reduce((total, covered) => total + Math.log(Math.min(1, Math.max(MIN_COVERAGE, covered))), 0);
}

/** The finished hypotheses of this step: those that ended, then those at the maximum length, which keep their last token. */
function finish(candidates: readonly Candidate[], slots: readonly Slot[]): Hypothesis[] {
  const hypotheses = candidates.map(({ slot, token, ranking, logProb }) => {
    const ended = token === END;
    return { ids: ended ? slots[slot].history : [...slots[slot].history, token], score: ranking, logProb, ended };
  });
  return [...hypotheses.filter(({ ended }) => ended), ...hypotheses.filter(({ ended }) => !ended)];
}

function hasEnough(count: number, bestEnded: boolean, settings: SearchSettings): boolean {
  if (settings.length_penalty === 0 && settings.coverage_penalty === 0) return bestEnded && count >= 1;
  return count >= maxFinished(settings);
}

function continued({ slot, token, score, logProb }: Candidate, slots: readonly Slot[], origin: number): Slot {
  const { history, coverage } = slots[slot];
  return { history: [...history, token], score, logProb, origin, coverage: coverage && coverage.slice() };
}
