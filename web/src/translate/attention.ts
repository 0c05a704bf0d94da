/** Shows the attention from the words of a translation to the words of its source, as a coloured table. */

import { css, textColour, weightColour, type Theme } from "../lib/colour";
import { checkFormat, type Explanation } from "../lib/format";
import { ALL_LAYERS, combinations, makeMap } from "../lib/maps";
import { make } from "./dom";

/** Weights below this value are not written into their cells. */
const MIN_WRITTEN = 0.05;

export function readExplanation(answer: unknown): Explanation {
  return checkFormat(answer as Explanation);
}

/** Make a table of the cross-attention of an explanation, with one row per target word. Null if the model has no cross-attention. */
export function attentionTable(explanation: Explanation, theme: Theme): HTMLElement | null {
  if (!explanation.attention.cross) return null;
  const [combination] = combinations(explanation, "cross");
  const map = makeMap(explanation, { site: "cross", combination, layer: ALL_LAYERS, head: 0, words: true, specials: true });
  if (!map) return null;
  const table = make("table", { class: "attention" });
  const headerRow = make("tr", {}, make("td"));
  for (const label of map.columnLabels) headerRow.append(make("th", { scope: "col", dir: "auto" }, make("span", {}, label)));
  table.append(make("thead", {}, headerRow));
  const body = make("tbody");
  map.rowLabels.forEach((label, row) => {
    const tableRow = make("tr", {}, make("th", { scope: "row", dir: "auto" }, label));
    for (let column = 0; column < map.columns; column++) {
      const weight = map.values[row * map.columns + column];
      const colour = weightColour(theme, weight);
      const title = `${label} → ${map.columnLabels[column]}: ${weight.toFixed(2)}`;
      const cell = make("td", { title }, weight >= MIN_WRITTEN ? weight.toFixed(2).replace(/^0/, "") : "");
      cell.style.background = css(colour);
      cell.style.color = textColour(colour);
      tableRow.append(cell);
    }
    body.append(tableRow);
  });
  table.append(body);
  return table;
}

/** A frame in which a wide table can be scrolled. It has the class `cut` while the right end of the table is not visible. */
export function scrollingFrame(table: HTMLElement, label: string): HTMLElement {
  const frame = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
  const updateCut = () => frame.classList.toggle("cut", frame.scrollLeft + frame.clientWidth < frame.scrollWidth - 1);
  frame.addEventListener("scroll", updateCut);
  new ResizeObserver(updateCut).observe(frame);
  return frame;
}
