/** Small pieces of HTML for the figures of the course. */

/** A text in both languages of the site. */
export type Bilingual = { en: string; ko: string };

export const isKorean = () => document.documentElement.lang.startsWith("ko");
export const say = (text: Bilingual) => (isKorean() ? text.ko : text.en);
export const digits = (value: number, count = 2) => value.toFixed(count).replace("-", "−");

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A slider with its name and value; `show` turns the value into text. */
export function slider(name: Bilingual, range: { min: number; max: number; step: number; value: number }, show: (value: number) => string, onInput: () => void) {
  const input = element("input", { type: "range", "aria-label": say(name), min: `${range.min}`, max: `${range.max}`, step: `${range.step}` });
  input.value = `${range.value}`;
  const output = element("output", {}, show(range.value));
  input.addEventListener("input", () => {
    output.textContent = show(Number(input.value));
    onInput();
  });
  return { row: element("label", { class: "control" }, `${say(name)} `, input, " ", output), value: () => Number(input.value) };
}

export function textBox(name: Bilingual, value: string, onChange: (text: string) => void) {
  const input = element("input", { type: "text", "aria-label": say(name), maxlength: "120" });
  input.value = value;
  input.addEventListener("input", (event) => {
    if (!(event as InputEvent).isComposing) onChange(input.value);
  });
  input.addEventListener("compositionend", () => onChange(input.value));
  return element("label", { class: "control wide" }, `${say(name)} `, input);
}

export function button(name: string, onClick: () => void, pressed = false) {
  const made = element("button", { type: "button", "aria-pressed": `${pressed}` }, name);
  made.addEventListener("click", onClick);
  return made;
}

/** Horizontal bars, one per name; values from 0 to 1. */
export function bars(names: string[], values: ArrayLike<number>, show = (value: number) => digits(value)) {
  const rows = names.map((name, i) => {
    const bar = element("span", { class: "bar" });
    bar.style.width = `${Math.max(0, Math.min(1, values[i])) * 100}%`;
    return element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "track" }, bar), element("td", { class: "number" }, show(values[i])));
  });
  return element("table", { class: "bars" }, element("tbody", {}, ...rows));
}

/** A heat map as a table: rows are queries, columns are keys. */
export function heatMap(rows: string[], columns: string[], value: (row: number, column: number) => number, onRow?: (row: number) => void) {
  const head = element("tr", {}, element("td"), ...columns.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.map((name, row) => {
    const label = onRow ? button(name, () => onRow(row)) : name;
    const cells = columns.map((_, column) => {
      const weight = value(row, column);
      const cell = element("td", { title: `${rows[row]} → ${columns[column]}: ${digits(weight, 3)}` }, weight >= 0.005 ? digits(weight).replace(/^0/, "") : "");
      cell.style.setProperty("--weight", `${Math.round(Math.sqrt(Math.max(0, Math.min(1, weight))) * 100)}%`);
      if (weight >= 0.49) cell.classList.add("strong");
      return cell;
    });
    return element("tr", {}, element("th", { scope: "row" }, label), ...cells);
  });
  return element("table", { class: "map" }, element("thead", {}, head), element("tbody", {}, ...body));
}

export function softmax(scores: number[]): number[] {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
