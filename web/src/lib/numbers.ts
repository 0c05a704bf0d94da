/** Numbers as text. */

/** A number with its sign; the minus is as wide as a plus. A number that rounds to zero has no sign. */
export function signed(value: number, digits = 2): string {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

/** A number with a minus but no plus; a dash if there is no number. */
export function formatNumber(value: number | null | undefined, digits = 2): string {
  return value === null || value === undefined ? "–" : signed(value, digits).replace("+", "");
}

/** A share as per cent: below 9.95% with one decimal, above without any, so that "10.0%" does not occur. */
export function percent(share: number): string {
  if (share < 0.0005) return "< 0.1%"; // a probability is never 0, but may be stored as 0
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** How many times a probability grows or shrinks if its logarithm changes by this; null if by less than a tenth. */
export function times(change: number): string | null {
  const factor = Math.exp(Math.abs(change));
  if (factor < 1.1) return null;
  if (factor < 9.95) return factor.toFixed(1);
  if (factor < 1e6) return Number(factor.toPrecision(2)).toLocaleString("en");
  const logarithm = Math.abs(change) / Math.LN10;
  let exponent = Math.floor(logarithm);
  let mantissa = (10 ** (logarithm - exponent)).toFixed(1);
  if (mantissa === "10.0") [mantissa, exponent] = ["1.0", exponent + 1];
  return `${mantissa} × 10${[...String(exponent)].map((digit) => SUPERSCRIPTS[Number(digit)]).join("")}`;
}

/** "{times} times less likely", for the change of a logarithm. */
export function likelihood(change: number, text: { asLikely: string; lessLikely: string; moreLikely: string }): string {
  const factor = times(change);
  return factor === null ? text.asLikely : fillTimes(change < 0 ? text.lessLikely : text.moreLikely, { times: factor });
}

/** Like `fill`, for a text with {times}, which may be a product; after a fraction bar, a product is in parentheses. */
export function fillTimes(template: string, values: Record<string, string> & { times: string }): string {
  const { times: factor } = values;
  return fill(template, { ...values, times: template.includes("/{times}") && factor.includes("×") ? `(${factor})` : factor });
}

/** A text with its {names} replaced by values. */
export function fill(template: string, values: Record<string, string | number>): string {
  return template.replace(/\{(\w+)\}/g, (name, key: string) => String(values[key] ?? name));
}
