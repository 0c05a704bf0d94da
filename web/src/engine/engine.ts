/** Runs a model in the browser. If a request explains a sentence, the engine gives the same answer as the server of a live page,
 * src/jumok/server/viewer/service.py. Only the engine has the operation "translate". */

import { Explainer, type ComputedExplanation, type ExplainRequest, type Progress } from "./explain";
import { bytesFromBase64, Weights, type StoredModel } from "./model_file";
import { checkStored, type Model } from "./model";
import { Recurrent } from "./recurrent";
import { Tokenizer } from "./tokenizer";
import { Transformer } from "./transformer";
import type { Cell, WholeText } from "../lib/format";

const CACHE_SIZE = 8;
const MAX_CHARACTERS = 1000;
const OPERATIONS = ["translate", "explain", "rank-heads", "measures", "layers", "steps"];

export class Engine {
  #explainer: Explainer;
  #cache = new Map<string, ComputedExplanation>();

  constructor(stored: StoredModel, base64: string) {
    checkStored(stored);
    const weights = new Weights(stored.tensors, bytesFromBase64(base64));
    const { architecture } = stored;
    const model: Model = architecture.family === "transformer" ? new Transformer(architecture, weights) : new Recurrent(architecture, weights);
    const source = new Tokenizer(stored.source);
    this.#explainer = new Explainer(model, stored, source, stored.target ? new Tokenizer(stored.target) : source);
  }

  /** Answer a request. The generator yields partial translations, or undefined so that other requests can run in between. */
  *answer(operation: string, request: ExplainRequest & { cell?: Cell }): Progress<unknown> {
    if (!OPERATIONS.includes(operation)) throw new Error(`There is no operation ${operation}.`);
    if ([...request.sentence].length > MAX_CHARACTERS) throw new Error(`A sentence has at most ${MAX_CHARACTERS} characters.`);
    if (operation === "translate") return yield* this.#explainer.translate(request.sentence, request.beam);
    const { cell, index = 0, ...rest } = request;
    const { sentence, count } = this.#explainer.partOf(request.sentence, index);
    const computed = yield* this.#explain({ ...rest, sentence });
    if (operation === "explain" && count < 2) return computed.document;
    if (operation === "explain") return { ...computed.document, whole_text: yield* this.#wholeText(request, index) };
    if (operation === "rank-heads") return yield* this.#explainer.effects(computed);
    if (operation === "measures") return yield* this.#explainer.measures(computed);
    if (operation === "layers") return { layers: this.#explainer.layers(computed) };
    if (!cell) throw new Error("Name the cell whose steps you want. Received: no cell.");
    return this.#explainer.steps(computed, cell);
  }

  /** The translation of a text of several parts, and of each part. */
  *#wholeText({ sentence, beam }: ExplainRequest, index: number): Progress<WholeText> {
    return { ...(yield* this.#explainer.translate(sentence, beam)), index };
  }

  /** Explain a sentence. The `CACHE_SIZE` explanations that were computed last are cached, because the page requests further results
   * (steps, effects, measures) for the explanation that it shows. */
  *#explain(request: ExplainRequest): Progress<ComputedExplanation> {
    const key = JSON.stringify([request.sentence, request.changes ?? [], request.prefix ?? [], request.target ?? null, request.beam ?? null]);
    const cached = this.#cache.get(key);
    if (cached) return cached;
    const computed = yield* this.#explainer.explain(request);
    this.#cache.set(key, computed);
    if (this.#cache.size > CACHE_SIZE) this.#cache.delete(this.#cache.keys().next().value!);
    return computed;
  }
}
