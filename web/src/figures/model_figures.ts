/** Interactive figures that run a small trained model. It translates from English to Korean and is stored in _static/model.js. */

import { Engine } from "../engine/engine";
import { END } from "../engine/model";
import type { StoredModel } from "../engine/model_file";
import type { Change } from "../lib/changes";
import { floats, weights, type Cell, type CellSteps, type Explanation, type Site } from "../lib/format";
import { displayToken, tokenLabels } from "../lib/maps";
import { bars, button, formatNumber, element, heatMap, localise, slider, softmax, textBox } from "./dom";

/** The figure `divisor` shows the row whose largest weight is nearest to this number. */
const PREFERRED_WEIGHT = 0.6;
const SENTENCE = "The student reads two books at the library.";
/** A figure is drawn again after the reader has not typed for this time. */
const TYPING_MS = 150;

declare global {
  interface Window {
    jumokModel?: { description: StoredModel; weights: string };
  }
}

const folder = document.currentScript instanceof HTMLScriptElement ? new URL(".", document.currentScript.src).href : "";
/** The engine, which is loaded once for all figures; null before the first figure needs it. */
let enginePromise: Promise<Engine> | null = null;

function loadEngine(): Promise<Engine> {
  enginePromise ??= new Promise((resolve, reject) => {
    const script = element("script", { src: `${folder}model.js` });
    script.onload = () => {
      const model = window.jumokModel;
      if (model) resolve(new Engine(model.description, model.weights));
      else reject(new Error("model.js has no model."));
    };
    script.onerror = () => reject(new Error("model.js could not be read."));
    document.head.append(script);
  });
  return enginePromise;
}

/** The answer of the engine to a request. Partial answers are ignored. */
function answer<Result>(engine: Engine, operation: string, request: Parameters<Engine["answer"]>[1]): Result {
  const progress = engine.answer(operation, request);
  for (;;) {
    const { done, value } = progress.next();
    if (done) return value as Result;
  }
}

const explain = (engine: Engine, sentence: string, changes: Change[] = [], prefix: number[] = []) =>
  answer<Explanation>(engine, "explain", { sentence, changes, prefix, beam: 1 });

/** A token without the “·” that stands for a space before it. */
const withoutDot = (token: string) => token.replace(/^·(?=.)/, "");

/** The weights of all heads of a site, with the labels of their rows and columns. */
interface SiteAttention {
  rows: string[];
  columns: string[];
  layers: number;
  heads: number;
  at(layer: number, head: number, row: number, column: number): number;
}

function attentionOf(explanation: Explanation, site: Site): SiteAttention {
  const packed = explanation.attention[site];
  if (!packed) throw new Error(`This model has no attention "${site}".`);
  const [layers, heads, queries, keys] = packed.shape;
  const values = weights(packed);
  const [rows, columns] = tokenLabels(explanation, site).map((names) => names.map(withoutDot));
  return { rows, columns, layers, heads, at: (layer, head, row, column) => values[((layer * heads + head) * queries + row) * keys + column] };
}

/** The weight of a cell, averaged over all heads. */
function mean(map: SiteAttention, row: number, column: number): number {
  let sum = 0;
  for (let layer = 0; layer < map.layers; layer++) for (let head = 0; head < map.heads; head++) sum += map.at(layer, head, row, column);
  return sum / (map.layers * map.heads);
}

/** Make a figure with a text box for a sentence. `draw` draws the rest of the figure, and is called again when the sentence changes. */
function withSentence(root: HTMLElement, draw: (engine: Engine, sentence: string, out: HTMLElement) => void): void {
  const out = element("div", { class: "result", "aria-live": "polite" }, localise({ en: "Loading the model …", ko: "모델을 불러오는 중 …" }));
  let timer = 0;
  let sentence = SENTENCE;
  const refresh = () =>
    loadEngine()
      .then((engine) => draw(engine, sentence.trim() || SENTENCE, out))
      .catch((error: unknown) => out.replaceChildren(error instanceof Error ? error.message : String(error)));
  root.append(
    textBox({ en: "sentence", ko: "문장" }, SENTENCE, (text) => {
      sentence = text;
      clearTimeout(timer);
      timer = window.setTimeout(refresh, TYPING_MS);
    }),
    out,
  );
  void refresh();
}

const translationLine = (explanation: Explanation) => element("p", { class: "translation", lang: "ko" }, `→ ${explanation.target.text}`);

/** The map of cross-attention, averaged over all heads. */
export function crossMap(root: HTMLElement): void {
  withSentence(root, (engine, sentence, out) => {
    const explanation = explain(engine, sentence);
    const map = attentionOf(explanation, "cross");
    out.replaceChildren(translationLine(explanation), heatMap(map.rows, map.columns, (row, column) => mean(map, row, column)));
  });
}

/** The attention of one token of the source in the encoder, with one row per head. The reader chooses the token. */
export function selfAttention(root: HTMLElement): void {
  let token = 1;
  withSentence(root, (engine, sentence, out) => {
    const map = attentionOf(explain(engine, sentence), "encoder");
    const draw = () => {
      const row = Math.min(token, map.rows.length - 1);
      const heads = Array.from({ length: map.layers * map.heads }, (_, i) => [Math.floor(i / map.heads), i % map.heads]);
      out.replaceChildren(
        element("p", { class: "choices" }, ...map.rows.map((name, i) => button(name, () => ((token = i), draw()), i === row))),
        heatMap(heads.map(([layer, head]) => `${layer} · ${head}`), map.columns, (index, column) => map.at(heads[index][0], heads[index][1], row, column)),
      );
    };
    draw();
  });
}

/** The reader silences heads of cross-attention and sees the new translation. */
export function silenceHeads(root: HTMLElement): void {
  const silenced = new Set<string>();
  withSentence(root, (engine, sentence, out) => {
    const draw = () => {
      const changes: Change[] = [...silenced].map((key) => {
        const [layer, head] = key.split(" ").map(Number);
        return { kind: "silence", site: "cross", layer, head };
      });
      const explanation = explain(engine, sentence, changes);
      const packed = explanation.attention.cross;
      const [layers, heads] = packed ? packed.shape : [0, 0];
      const toggles = Array.from({ length: layers * heads }, (_, i) => {
        const key = `${Math.floor(i / heads)} ${i % heads}`;
        const toggle = () => {
          if (!silenced.delete(key)) silenced.add(key);
          draw();
        };
        return button(`${Math.floor(i / heads)} · ${i % heads}`, toggle, silenced.has(key));
      });
      const before = explanation.before;
      const change = before?.log_prob != null && before.log_prob_changed != null ? before.log_prob_changed - before.log_prob : 0;
      out.replaceChildren(
        element("p", { class: "choices" }, localise({ en: "Heads that are off (layer · head): ", ko: "꺼진 헤드(레이어 · 헤드): " }), ...toggles),
        translationLine(explanation),
        element("p", {}, localise({ en: `Change in the log-probability of the unchanged translation: ${formatNumber(change)}`, ko: `원래 번역의 로그 확률 변화: ${formatNumber(change)}` })),
      );
    };
    draw();
  });
}

/** The weights of one query of the model if its products q·k are divided by a number that the reader chooses. The model divides by √d. */
export function divisor(root: HTMLElement): void {
  withSentence(root, (engine, sentence, out) => {
    const explanation = explain(engine, sentence);
    const map = attentionOf(explanation, "cross");
    const { rows, columns } = map;
    // The effect of the divisor is most visible in a row whose largest weight is neither near 0 nor near 1.
    const strongest = (row: number) => Math.max(...columns.map((_, column) => map.at(0, 0, row, column)));
    const distance = (row: number) => Math.abs(strongest(row) - PREFERRED_WEIGHT);
    const query = rows.reduce((best, _, row) => (distance(row) < distance(best) ? row : best), 0);
    const cell: Cell = { site: "cross", layer: 0, head: 0, query, key: 0 };
    const { steps } = answer<CellSteps>(engine, "steps", { sentence, beam: 1, cell });
    const stepsOverKeys = steps.filter((step) => step.over === "keys").map((step) => ({ name: step.name, values: [...floats(step)] }));
    const scaled = stepsOverKeys.find(({ name }) => name.includes("score")) ?? stepsOverKeys[0];
    const width = floats(steps.find(({ name }) => name === "query") ?? steps[0]).length;
    /** The products q·k, before they are divided by √d. */
    const products = scaled.values.map((score) => score * Math.sqrt(width));
    const divideBy = slider({ en: "divide by", ko: "나누는 수" }, { min: 0.5, max: width, step: 0.1, value: Math.sqrt(width) }, (v) => formatNumber(v, 1), () => draw());
    const result = element("div");
    const draw = () => result.replaceChildren(bars(columns, softmax(products.map((product) => product / divideBy.value()))));
    out.replaceChildren(
      element("p", {}, localise({ en: `The weights of “${rows[cell.query]}” in head 0 of layer 0 if its scores q·k are divided by this number. The model has d = ${width} and divides by √d = ${formatNumber(Math.sqrt(width))}.`, ko: `레이어 0, 헤드 0에서 “${rows[cell.query]}”의 점수 q·k를 이 수로 나누었을 때의 가중치입니다. 이 모델(d = ${width})은 √d(= ${formatNumber(Math.sqrt(width))})로 나눕니다.` })),
      divideBy.row,
      result,
    );
    draw();
  });
}

/** The reader hides a word of the source from cross-attention. The weights of this word become 0 at every step of the unchanged
 * translation. */
export function hideWord(root: HTMLElement): void {
  /** The index of the word that is hidden; −1 if none is hidden. */
  let hiddenWord = -1;
  withSentence(root, (engine, sentence, out) => {
    const unchanged = explain(engine, sentence);
    const { words, word_of_token: wordOf } = unchanged.source;
    const draw = () => {
      const keys = wordOf.flatMap((word, key) => (word === hiddenWord ? [key] : []));
      const queries = Array.from({ length: unchanged.target.ids.length + 1 }, (_, query) => query);
      const changes: Change[] = queries.flatMap((query) => keys.map((key): Change => ({ kind: "paint", site: "cross", layer: null, head: null, query, key, weight: 0 })));
      out.replaceChildren(
        element("p", { class: "choices" }, localise({ en: "Hide: ", ko: "가릴 단어: " }), ...words.map((word, i) => button(word, () => ((hiddenWord = hiddenWord === i ? -1 : i), draw()), hiddenWord === i))),
        translationLine(explain(engine, sentence, changes)),
      );
    };
    draw();
  });
}

/** The reader moves words of the source and sees the new translation. */
export function wordOrder(root: HTMLElement): void {
  let words = "The teacher gave the student a book .".split(" ");
  const out = element("div", { "aria-live": "polite" });
  root.append(out);
  const draw = (engine: Engine) => {
    /** Swap a word with the word before it. */
    const move = (i: number) => {
      words = [...words.slice(0, i - 1), words[i], words[i - 1], ...words.slice(i + 1)];
      draw(engine);
    };
    out.replaceChildren(
      element("p", { class: "choices" }, ...words.map((word, i) => button(i ? `← ${word}` : word, () => i && move(i)))),
      translationLine(explain(engine, words.join(" ").replace(" .", "."))),
    );
  };
  loadEngine().then(draw, (error: unknown) => out.replaceChildren(String(error)));
}

/** The six most probable tokens that the decoder could write next. The reader clicks one of them, and the model continues from there. */
export function nextTokens(root: HTMLElement): void {
  let prefix: number[] = [];
  withSentence(root, (engine, sentence, out) => {
    prefix = [];
    const draw = () => {
      const explanation = explain(engine, sentence, [], prefix);
      const candidates = explanation.candidates[prefix.length] ?? [];
      const write = (id: number) => {
        prefix = [...prefix, id];
        draw();
      };
      const choices = candidates.slice(0, 6).map(([id, token, probability]) => {
        const label = `${withoutDot(displayToken(token))} ${formatNumber(probability)}`;
        return id === END ? element("span", {}, label) : button(label, () => write(id)); // no token can follow `</s>`
      });
      out.replaceChildren(
        translationLine(explanation),
        element("p", { class: "choices" }, localise({ en: "Next token: ", ko: "다음 토큰: " }), ...choices),
        button(localise({ en: "Start again", ko: "처음부터 다시" }), () => ((prefix = []), draw())),
      );
    };
    draw();
  });
}

/** The attention roll-out of the encoder over the first layers. The reader chooses the number of layers. */
export function rollOut(root: HTMLElement): void {
  withSentence(root, (engine, sentence, out) => {
    const map = attentionOf(explain(engine, sentence), "encoder");
    const n = map.rows.length;
    const result = element("div");
    const draw = () => {
      let product = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => Number(i === j)));
      for (let layer = 0; layer < depth.value(); layer++) {
        const mixed = Array.from({ length: n }, (_, i) =>
          Array.from({ length: n }, (_, j) => {
            let sum = 0;
            for (let head = 0; head < map.heads; head++) sum += map.at(layer, head, i, j);
            return 0.5 * (sum / map.heads) + (i === j ? 0.5 : 0);
          }),
        );
        product = mixed.map((row) => row.map((_, j) => row.reduce((total, value, k) => total + value * product[k][j], 0)));
      }
      result.replaceChildren(heatMap(map.rows, map.columns, (row, column) => product[row][column]));
    };
    const depth = slider({ en: "layers", ko: "레이어 수" }, { min: 0, max: map.layers, step: 1, value: map.layers }, (v) => `${v}`, () => draw());
    out.replaceChildren(depth.row, result);
    draw();
  });
}
