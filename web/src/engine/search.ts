/** Beam search for one sentence, as in src/jumok/inference/search/beam.py. A beam of 1 is greedy search. */

import { logSoftmax } from "./arrays";
import type { SearchSettings } from "./model_file";
import { BEGIN, END, PAD, type Edit, type Model, type Probe, type State } from "./model";

/** Let p be the probability of all masked tokens of a step together. If p is at most this number, the other probabilities are divided by
 * 1 − p. If p is larger, 1 − p would be too inaccurate, so the softmax is computed again. */
const MAX_MASKED_PROBABILITY = 0.5;
/** The smallest normal number of single precision. Smaller coverages are replaced by it, because 0 has no logarithm. */
const MIN_COVERAGE = 2 ** -126;

/** A hypothesis with one more token, which a step of the search may keep. If its token is disallowed, its score is −∞. Such a candidate is
 * called dead: it is neither kept nor finished. docs/explanation-format.md describes most fields as columns of `search`. */
export interface Candidate {
  /** The candidate that this candidate continues: its index among the `candidates` of the previous `SearchStep`; −1 at the first step. */
  parent: number;
  /** The index of the continued hypothesis among the rows of the model's state. */
  slot: number;
  token: number;
  /** The sum of log-probabilities after masking. Candidates are compared by this number. The tokens of a prefix add 0. */
  score: number;
  /** The sum of the model's log-probabilities without masking. It includes the tokens of a prefix. */
  logProb: number;
  /** Whether the next step continues the candidate. */
  kept: boolean;
  /** Whether the candidate is one of the `beam` best of its step, and is a complete translation: it ends with `</s>` or has the maximum
   * length. */
  finished: boolean;
  /** The number by which finished hypotheses are ranked: score / steps^length_penalty, plus the term of the coverage penalty. */
  ranking: number;
}

export interface Hypothesis {
  ids: number[];
  /** The `ranking` of the candidate that finished the hypothesis. */
  ranking: number;
  logProb: number;
  ended: boolean;
}

/** A step of the search, for the callback `onStep`. */
export interface SearchStep {
  /** The candidates whose score is not −∞. */
  candidates: Candidate[];
}

/** A hypothesis that the search continues. */
interface Slot {
  /** The tokens so far. */
  history: number[];
  score: number;
  logProb: number;
  /** The index of this hypothesis among the `candidates` of the last `SearchStep`; −1 before the first step. */
  origin: number;
  /** For each source token and `</s>`: the attention that it has received so far. Null if there is no coverage penalty. */
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

/** The number of finished hypotheses after which the search ends, if it has a length penalty or a coverage penalty. */
function maxFinished({ beam, patience_factor: patience }: SearchSettings): number {
  return beam > 1 ? Math.max(1, Math.floor(beam * patience + 0.5)) : 1;
}

/** Yields after every step. Returns the finished hypotheses, the best first. */
export function* beamSearch(model: Model, settings: SearchSettings, request: SearchRequest): Generator<undefined, Hypothesis[]> {
  checkPrefix(request.prefix);
  const maxSteps = maxLength(settings, request.source.length, request.prefix.length);
  const needsCoverage = settings.coverage_penalty !== 0;
  /** For each row of the current step, which is a hypothesis: the attention that each source token receives. */
  const attentionOfRow: Float64Array[] = [];
  const probe = coverageProbe(model, request, needsCoverage ? attentionOfRow : null);
  let state: State = model.begin(request.source, { edit: request.edit });
  const finished: Hypothesis[] = [];
  const firstCoverage = needsCoverage ? new Float64Array(request.source.length + 1) : null;
  let slots: Slot[] = [{ history: [], score: 0, logProb: 0, origin: -1, coverage: firstCoverage }];
  /** Whether the best candidate of any step so far has finished. */
  let hasBestFinished = false;
  for (let step = 0; slots.length; step++) {
    attentionOfRow.length = 0;
    const logProbs = model.output.logProbs(model.step(state, slots.map(({ history }) => history.at(-1) ?? BEGIN), probe));
    slots.forEach(({ coverage }, row) => coverage?.forEach((sum, key) => (coverage[key] = sum + attentionOfRow[row][key])));
    const candidates = findCandidates(logProbs, slots, settings, request.prefix);
    const atMaxLength = step + 1 === maxSteps;
    const isAlive = ({ score }: Candidate) => score > -Infinity;
    const hasEnded = (candidate: Candidate) => candidate.token === END && isAlive(candidate);
    candidates.forEach((candidate, i) => {
      candidate.ranking = rankingOf(candidate.score, step + 1, slots[candidate.slot].coverage, settings);
      candidate.finished = i < settings.beam && isAlive(candidate) && (candidate.token === END || atMaxLength);
    });
    finished.push(...finishedHypotheses(candidates.filter(({ finished }) => finished), slots));
    hasBestFinished ||= candidates[0]?.finished ?? false;
    const survivors = candidates.filter((candidate) => !hasEnded(candidate)).slice(0, settings.beam).filter(isAlive);
    const isDone = atMaxLength || hasEnough(finished.length, hasBestFinished, settings) || !survivors.length;
    const alive = candidates.filter(isAlive);
    slots = isDone ? [] : survivors.map((candidate) => continueSlot(candidate, slots, alive.indexOf(candidate)));
    if (!isDone) for (const candidate of survivors) candidate.kept = true;
    request.onStep?.({ candidates: alive });
    if (slots.length) state = model.select(state, survivors.map(({ slot }) => slot));
    yield;
  }
  return finished.sort((a, b) => b.ranking - a.ranking);
}

/** Throw an error if a prefix has `<pad>`, `<s>` or `</s>`. It may have `<unk>`. */
function checkPrefix(prefix: readonly number[]): void {
  if (prefix.some((id) => [PAD, BEGIN, END].includes(id))) throw new Error(`A prefix must have no special tokens. Received: ${prefix.join(", ")}.`);
}

/** A probe that collects the cross-attention of the last layer in `attentionOfRow`: for each row, the average over the heads. If
 * `attentionOfRow` is null, nothing is collected. */
function coverageProbe(model: Model, { edit, onWeights }: SearchRequest, attentionOfRow: Float64Array[] | null): Probe {
  const cross = model.sites.cross;
  if (attentionOfRow && !cross) throw new Error("The coverage penalty needs attention to the source, and this model has none.");
  if (!attentionOfRow) return { edit, onWeights };
  return {
    edit,
    onWeights: (weights, weightRow, hypothesis) => {
      onWeights?.(weights, weightRow, hypothesis);
      if (weightRow.site !== "cross" || weightRow.layer !== cross!.layers - 1) return;
      const sum = (attentionOfRow[hypothesis] ??= new Float64Array(weights.length));
      weights.forEach((weight, key) => (sum[key] += weight / cross!.heads));
    },
  };
}

/** The best candidates of a step, the best first. There are at most 2 · beam of them. Some of them may be dead. While the prefix is
 * written, the only candidate is the next token of the prefix. `allLogProbs` has the log-probabilities of each slot. */
function findCandidates(allLogProbs: readonly Float32Array[], slots: readonly Slot[], settings: SearchSettings, prefix: readonly number[]): Candidate[] {
  const step = slots[0].history.length;
  const count = 2 * settings.beam;
  const makeCandidate = (slot: number, token: number, score: number, logProb: number): Candidate => ({
    parent: slots[slot].origin,
    slot,
    token,
    score: Math.fround(score),
    logProb: Math.fround(slots[slot].logProb + logProb),
    kept: false,
    finished: false,
    ranking: 0,
  });
  if (step < prefix.length) return [makeCandidate(0, prefix[step], 0, allLogProbs[0][prefix[step]])];
  const candidates = allLogProbs.flatMap((logProbs, slot) => {
    const masked = maskDisallowed(logProbs, slots[slot].history, settings);
    return largest(masked, count).map((token) => makeCandidate(slot, token, slots[slot].score + masked[token], logProbs[token]));
  });
  candidates.sort((a, b) => b.score - a.score);
  candidates.splice(count);
  // In the first step after a prefix, `</s>` is only allowed if it is the best candidate. Otherwise it becomes dead, but keeps its place.
  if (step === prefix.length && step) candidates.forEach((candidate, i) => i && candidate.token === END && (candidate.score = -Infinity));
  return candidates;
}

/** The indices of the largest values, the largest first. If values are equal, the smaller index comes first. */
export function largest(values: Float32Array, count: number): number[] {
  const best: number[] = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && !(values[i] > values[best[count - 1]])) continue;
    let rank = best.length;
    while (rank > 0 && values[i] > values[best[rank - 1]]) rank--;
    best.splice(rank, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

/** Mask `<pad>` and `<s>`, which are never produced, in `logProbs` itself. If the settings disallow further tokens after `history`, return
 * a copy in which these tokens are masked too and the allowed tokens are renormalised; if no token is allowed, `</s>` gets the
 * probability 1. If the settings disallow no token, return `logProbs`, which is not renormalised. */
function maskDisallowed(logProbs: Float32Array, history: readonly number[], settings: SearchSettings): Float32Array {
  /** The sum of the probabilities of all masked tokens. */
  let maskedProbability = Math.exp(logProbs[PAD]) + Math.exp(logProbs[BEGIN]);
  logProbs[PAD] = logProbs[BEGIN] = -Infinity;
  const disallowed = new Set(repeatingTokens(history, settings.no_repeat_ngram_size));
  if (history.length < settings.min_length) disallowed.add(END);
  if (!disallowed.size) return logProbs;
  for (const token of disallowed) maskedProbability += Math.exp(logProbs[token]);
  const masked = logProbs.slice();
  for (const token of disallowed) masked[token] = -Infinity;
  if (maskedProbability <= MAX_MASKED_PROBABILITY) {
    const shift = Math.log1p(-maskedProbability);
    for (let i = 0; i < masked.length; i++) masked[i] -= shift;
  } else {
    if (masked.every((value) => value === -Infinity)) masked[END] = 0;
    logSoftmax(masked);
  }
  return masked;
}

/** The tokens that would complete an n-gram of this size that `history` already has. None if the size is 0. */
function* repeatingTokens(history: readonly number[], size: number): Generator<number> {
  if (!size || history.length < size) return;
  const current = history.slice(history.length - size + 1);
  for (let start = 0; start + size <= history.length; start++)
    if (current.every((token, i) => history[start + i] === token)) yield history[start + size - 1];
}

/** The ranking of a hypothesis: see `Candidate.ranking`. `score`: see `Candidate.score`. */
function rankingOf(score: number, steps: number, coverage: Float64Array | null, settings: SearchSettings): number {
  const ranking = Math.fround(score / steps ** settings.length_penalty);
  if (!coverage) return ranking;
  const logCoverage = (covered: number) => Math.log(Math.min(1, Math.max(MIN_COVERAGE, covered)));
  return ranking + settings.coverage_penalty * coverage.reduce((total, covered) => total + logCoverage(covered), 0);
}

/** The hypotheses of the finished candidates. Hypotheses that ended with `</s>` come first. The others have reached the maximum length,
 * and their last token is part of the translation. */
function finishedHypotheses(candidates: readonly Candidate[], slots: readonly Slot[]): Hypothesis[] {
  const hypotheses = candidates.map(({ slot, token, ranking, logProb }) => {
    const ended = token === END;
    return { ids: ended ? slots[slot].history : [...slots[slot].history, token], ranking, logProb, ended };
  });
  return [...hypotheses.filter(({ ended }) => ended), ...hypotheses.filter(({ ended }) => !ended)];
}

/** Whether the search has enough finished hypotheses. Without penalties, no hypothesis can become better than the best candidate of a
 * step, so the search ends when this candidate has finished. With a penalty, it ends after `maxFinished` hypotheses. */
function hasEnough(count: number, hasBestFinished: boolean, settings: SearchSettings): boolean {
  if (settings.length_penalty === 0 && settings.coverage_penalty === 0) return hasBestFinished;
  return count >= maxFinished(settings);
}

function continueSlot({ slot, token, score, logProb }: Candidate, slots: readonly Slot[], origin: number): Slot {
  const { history, coverage } = slots[slot];
  return { history: [...history, token], score, logProb, origin, coverage: coverage && coverage.slice() };
}
