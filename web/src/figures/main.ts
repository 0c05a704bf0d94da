/** Starts the interactive figures of the course (docs/explain/). Each element with the attribute `data-figure` contains a sentence that says what the
 * figure does. The interactive figure is added below this sentence. */

import { additive, clocks, cost, efficient, forgetting, kernels, residual } from "./formulas";
import { crossMap, divisor, hideWord, nextTokens, rollOut, selfAttention, silenceHeads, wordOrder } from "./model_figures";
import { element, localise } from "./dom";

const FIGURES: Record<string, (root: HTMLElement) => void> = {
  additive,
  clocks,
  cost,
  "cross-map": crossMap,
  divisor,
  efficient,
  forgetting,
  "hide-word": hideWord,
  kernels,
  "next-tokens": nextTokens,
  residual,
  "roll-out": rollOut,
  "self-attention": selfAttention,
  "silence-heads": silenceHeads,
  "word-order": wordOrder,
};

function start(): void {
  for (const place of document.querySelectorAll<HTMLElement>("[data-figure]")) {
    const figure = FIGURES[place.dataset.figure ?? ""];
    if (!figure) continue;
    const root = element("div", { class: "figure-body", role: "group", "aria-label": localise({ en: "Interactive figure", ko: "대화형 그림" }) });
    place.append(root);
    figure(root);
  }
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
