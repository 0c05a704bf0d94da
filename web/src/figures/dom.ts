/** Makes the HTML elements of the interactive figures of the course. */

/** A text in both languages of the site. */
export type Bilingual = { en: string; ko: string };

export const isKorean = () => document.documentElement.lang.startsWith("ko");
/** The text in the language of the page. */
export const localise = (text: Bilingual) => (isKorean() ? text.ko : text.en);
export const formatNumber = (value: number, decimals = 2) => value.toFixed(decimals).replace("-", "−");

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const newElement = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) newElement.setAttribute(key, value);
  newElement.append(...children);
  return newElement;
}

/** A slider with its name and its value. `show` formats the value. */
export function slider(name: Bilingual, range: { min: number; max: number; step: number; value: number }, show: (value: number) => string, onInput: () => void) {
  const input = element("input", { type: "range", "aria-label": localise(name), min: `${range.min}`, max: `${range.max}`, step: `${range.step}` });
  input.value = `${range.value}`;
  const output = element("output", {}, show(range.value));
  input.addEventListener("input", () => {
    output.textContent = show(Number(input.value));
    onInput();
  });
  return { row: element("label", { class: "control" }, `${localise(name)} `, input, " ", output), value: () => Number(input.value) };
}

export function textBox(name: Bilingual, value: string, onChange: (text: string) => void) {
  const input = element("input", { type: "text", "aria-label": localise(name), maxlength: "120" });
  input.value = value;
  input.addEventListener("input", (event) => {
    if (!(event as InputEvent).isComposing) onChange(input.value);
  });
  input.addEventListener("compositionend", () => onChange(input.value));
  return element("label", { class: "control wide" }, `${localise(name)} `, input);
}

export function button(name: string, onClick: () => void, isPressed = false) {
  const newButton = element("button", { type: "button", "aria-pressed": `${isPressed}` }, name);
  newButton.addEventListener("click", onClick);
  return newButton;
}

/** Horizontal bars, one per name. A bar of the value 1 has the full length, as does a bar of a larger value. */
export function bars(names: string[], values: ArrayLike<number>, show = (value: number) => formatNumber(value)) {
  const rows = names.map((name, i) => {
    const bar = element("span", { class: "bar" });
    bar.style.width = `${Math.max(0, Math.min(1, values[i])) * 100}%`;
    return element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "track" }, bar), element("td", { class: "number" }, show(values[i])));
  });
  return element("table", { class: "bars" }, element("tbody", {}, ...rows));
}

/** Smaller weights are not written into their cells, because they would be rounded to .00. */
const MIN_WRITTEN = 0.005;
/** From this weight on, a cell is so dark that its number is light. */
const MIN_STRONG = 0.49;

/** A heat map as an HTML table. Rows are queries and columns are keys. If `onRow` is given, the label of each row is a button. */
export function heatMap(rows: string[], columns: string[], value: (row: number, column: number) => number, onRow?: (row: number) => void) {
  const headerRow = element("tr", {}, element("td"), ...columns.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.map((name, row) => {
    const label = onRow ? button(name, () => onRow(row)) : name;
    const cells = columns.map((_, column) => {
      const weight = value(row, column);
      const cell = element("td", { title: `${rows[row]} → ${columns[column]}: ${formatNumber(weight, 3)}` }, weight >= MIN_WRITTEN ? formatNumber(weight).replace(/^0/, "") : "");
      cell.style.setProperty("--weight", `${Math.round(Math.sqrt(Math.max(0, Math.min(1, weight))) * 100)}%`);
      if (weight >= MIN_STRONG) cell.classList.add("strong");
      return cell;
    });
    return element("tr", {}, element("th", { scope: "row" }, label), ...cells);
  });
  return element("table", { class: "map" }, element("thead", {}, headerRow), element("tbody", {}, ...body));
}

export function softmax(scores: number[]): number[] {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
