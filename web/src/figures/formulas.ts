/** Interactive figures that compute a formula, without a trained model. */

import { bars, formatNumber, element, heatMap, localise, slider, softmax, type Bilingual } from "./dom";

/** How much of the first word remains at step n of a plain recurrent network and of an LSTM, that is, after n − 1 further steps. */
export function forgetting(root: HTMLElement): void {
  const draw = () => {
    const [u, gate] = [weight.value(), forget.value()];
    const lengths = [2, 5, 10, 20, 50];
    out.replaceChildren(
      element("p", {}, localise({ en: "Plain RNN: how much of the first word remains", ko: "단순 RNN: 첫 단어가 남아 있는 정도" })),
      bars(lengths.map((n) => `n = ${n}`), lengths.map((n) => u ** (n - 1)), (value) => value.toPrecision(2)),
      element("p", {}, localise({ en: "LSTM cell", ko: "LSTM 셀" })),
      bars(lengths.map((n) => `n = ${n}`), lengths.map((n) => gate ** (n - 1)), (value) => value.toPrecision(2)),
    );
  };
  const weight = slider({ en: "U", ko: "U" }, { min: 0.1, max: 1.2, step: 0.05, value: 0.5 }, (v) => formatNumber(v), () => draw());
  const forget = slider({ en: "forget gate", ko: "망각 게이트" }, { min: 0.5, max: 1, step: 0.01, value: 0.95 }, (v) => formatNumber(v), () => draw());
  const out = element("div");
  root.append(weight.row, forget.row, out);
  draw();
}

/** The points of the regression, each as [x, y]. */
const POINTS: [number, number][] = [[0, 0], [1, 10], [2, 40]];
const KERNELS: { name: Bilingual; similarity: (distance: number) => number }[] = [
  { name: { en: "triangular", ko: "삼각" }, similarity: (distance) => Math.max(0, 1 - distance) },
  { name: { en: "boxcar", ko: "상자" }, similarity: (distance) => (distance <= 1 ? 1 : 0) },
  { name: { en: "Gaussian", ko: "가우스" }, similarity: (distance) => Math.exp(-(distance ** 2) / 2) },
];

/** Nadaraya–Watson regression through three points. The reader moves the query. */
export function kernels(root: HTMLElement): void {
  const choice = element("select", { "aria-label": localise({ en: "kernel", ko: "커널" }) }, ...KERNELS.map(({ name }) => element("option", {}, localise(name))));
  const draw = () => {
    const x = query.value();
    const similarities = POINTS.map(([pointX]) => KERNELS[choice.selectedIndex].similarity(Math.abs(x - pointX)));
    const sum = similarities.reduce((a, b) => a + b, 0);
    const weights = similarities.map((similarity) => (sum ? similarity / sum : 0));
    const answer = weights.reduce((total, weight, i) => total + weight * POINTS[i][1], 0);
    out.replaceChildren(
      bars(POINTS.map(([pointX, pointY]) => `x = ${pointX}, y = ${pointY}`), weights),
      element("p", {}, `f(${formatNumber(x)}) = ${formatNumber(answer)}`),
    );
  };
  const query = slider({ en: "query x", ko: "쿼리 x" }, { min: -1, max: 9, step: 0.05, value: 0.25 }, (v) => formatNumber(v), () => draw());
  choice.addEventListener("change", draw);
  const out = element("div", { "aria-live": "polite" });
  root.append(query.row, element("label", { class: "control" }, `${localise({ en: "kernel", ko: "커널" })} `, choice), out);
  draw();
}

/** The additive score v · tanh(q + k) of the example on the page, where all vectors have one element: one query and two keys. The keys are 0 and
 * log(3) / 2, and their values are 1 and 3. */
export function additive(root: HTMLElement): void {
  const draw = () => {
    const scores = [0, Math.log(3) / 2].map((key) => v.value() * Math.tanh(query.value() + key));
    const weights = softmax(scores);
    out.replaceChildren(
      bars(["k₁ = 0", "k₂ = 0.549"], weights),
      element("p", {}, `${localise({ en: "scores", ko: "점수" })} ${scores.map((score) => formatNumber(score, 3)).join(", ")} · ${localise({ en: "context", ko: "컨텍스트" })} ${formatNumber(weights[0] * 1 + weights[1] * 3, 3)}`),
    );
  };
  const query = slider({ en: "query q", ko: "쿼리 q" }, { min: -3, max: 3, step: 0.1, value: 0 }, (v) => formatNumber(v, 1), () => draw());
  const v = slider({ en: "v", ko: "v" }, { min: -8, max: 8, step: 0.1, value: 2 * Math.log(3) }, (value) => formatNumber(value), () => draw());
  const out = element("div", { "aria-live": "polite" });
  root.append(query.row, v.row, out);
  draw();
}

/** The gradient at the first of n layers, with and without the residual connection. */
export function residual(root: HTMLElement): void {
  const draw = () => {
    const [n, slope] = [layers.value(), derivative.value()];
    out.replaceChildren(
      element("p", {}, `${localise({ en: "without add", ko: "더하지 않을 때" })}: ${(slope ** n).toExponential(1)}`),
      element("p", {}, `${localise({ en: "with add", ko: "더할 때" })}: ${((1 + slope) ** n).toPrecision(3)}`),
    );
  };
  const layers = slider({ en: "layers", ko: "레이어 수" }, { min: 1, max: 48, step: 1, value: 12 }, (v) => `${v}`, () => draw());
  const derivative = slider({ en: "F′", ko: "F′" }, { min: 0.01, max: 1, step: 0.01, value: 0.1 }, (v) => formatNumber(v), () => draw());
  const out = element("div", { "aria-live": "polite" });
  root.append(layers.row, derivative.row, out);
  draw();
}

/** The number of multiplications of each type of layer for n tokens, if the width d is 512. */
export function cost(root: HTMLElement): void {
  const rows: [Bilingual, string, (n: number, d: number) => number][] = [
    [{ en: "self-attention", ko: "셀프 어텐션" }, "n²·d", (n, d) => n * n * d],
    [{ en: "restricted", ko: "제한" }, "r·n·d, r = 64", (n, d) => 64 * n * d],
    [{ en: "efficient, linear", ko: "효율적, 선형" }, "n·d² / 8", (n, d) => (n * d * d) / 8],
    [{ en: "recurrent", ko: "순환" }, "n·d²", (n, d) => n * d * d],
    [{ en: "convolutional", ko: "합성곱" }, "k·n·d², k = 3", (n, d) => 3 * n * d * d],
  ];
  const draw = () => {
    const n = 2 ** length.value();
    const counts = rows.map(([, , operations]) => operations(n, 512));
    const most = Math.max(...counts);
    out.replaceChildren(bars(rows.map(([name, order]) => `${localise(name)} ${order}`), counts.map((count) => count / most), (share) => Math.round(share * most).toLocaleString("en")));
  };
  const length = slider({ en: "tokens n", ko: "토큰 n" }, { min: 4, max: 14, step: 1, value: 7 }, (v) => `${2 ** v}`, () => draw());
  const out = element("div", { "aria-live": "polite" });
  root.append(length.row, out);
  draw();
}

/** The sine and the cosine of a position p, drawn as the hands of two clocks. The angle of the fast hand is p, of the slow hand p / 100. */
export function clocks(root: HTMLElement): void {
  const draw = () => {
    const hands = [1, 100].map((divisor) => {
      const angle = position.value() / divisor;
      return `<g transform="translate(${divisor === 1 ? 60 : 180} 60)"><circle r="50" fill="none" stroke="currentColor"/><line x2="${50 * Math.cos(angle)}" y2="${-50 * Math.sin(angle)}" stroke="#3b5bdb" stroke-width="3"/><text y="75" text-anchor="middle" fill="currentColor" font-size="12">(${formatNumber(Math.sin(angle), 3)}, ${formatNumber(Math.cos(angle), 3)})</text></g>`;
    });
    out.innerHTML = `<svg viewBox="0 0 240 145" width="300" role="img" aria-label="sin, cos">${hands.join("")}</svg>`;
  };
  const position = slider({ en: "position p", ko: "위치 p" }, { min: 0, max: 100, step: 1, value: 0 }, (v) => `${v}`, () => draw());
  const out = element("div");
  root.append(position.row, out);
  draw();
}

/** Efficient and softmax attention on the same two keys. Their values are 10 and 20. */
export function efficient(root: HTMLElement): void {
  const keys = [[0, 0], [Math.log(3), 0]];
  const draw = () => {
    const query = [first.value(), second.value()];
    const queryFeatures = softmax(query);
    const keyFeatures = [0, 1].map((feature) => softmax(keys.map((key) => key[feature])));
    const efficientWeights = [0, 1].map((key) => queryFeatures[0] * keyFeatures[0][key] + queryFeatures[1] * keyFeatures[1][key]);
    const dotWeights = softmax(keys.map((key) => (key[0] * query[0] + key[1] * query[1]) / Math.SQRT2));
    const context = (weights: number[]) => formatNumber(10 * weights[0] + 20 * weights[1]);
    out.replaceChildren(
      heatMap([localise({ en: "efficient", ko: "효율적" }), localise({ en: "scaled dot", ko: "스케일드 닷 프로덕트" })], ["k₁", "k₂"], (row, column) => (row ? dotWeights : efficientWeights)[column]),
      element("p", {}, `${localise({ en: "context", ko: "컨텍스트" })}: ${context(efficientWeights)} · ${context(dotWeights)}`),
    );
  };
  const first = slider({ en: "q₁", ko: "q₁" }, { min: -4, max: 4, step: 0.1, value: 0 }, (v) => formatNumber(v, 1), () => draw());
  const second = slider({ en: "q₂", ko: "q₂" }, { min: -4, max: 4, step: 0.1, value: 0 }, (v) => formatNumber(v, 1), () => draw());
  const out = element("div", { "aria-live": "polite" });
  root.append(first.row, second.row, out);
  draw();
}
