/** Formats numbers as text. */

/** A number with its sign. The minus is “−”, which is as wide as “+”. A number that rounds to zero has no sign. */
export function signed(value: number, digits = 2): string {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

/** A number with “−” if it is negative, without “+”; a dash if there is no number. */
export function formatNumber(value: number | null | undefined, digits = 2): string {
  return value === null || value === undefined ? "–" : signed(value, digits).replace("+", "");
}

/** A share in per cent. Shares below 9.95% have one decimal, larger shares have none, so that "10.0%" does not occur. */
export function percent(share: number): string {
  if (share < 0.0005) return "< 0.1%"; // a probability is never 0, but may be stored as 0
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** The factor by which a probability grows or shrinks if its logarithm changes by `change`. Null if the factor is below 1.1. */
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

/** A text such as "2.7 times less likely", for the change of a log-probability. */
export function likelihood(change: number, text: { asLikely: string; lessLikely: string; moreLikely: string }): string {
  const factor = times(change);
  return factor === null ? text.asLikely : fillTimes(change < 0 ? text.lessLikely : text.moreLikely, { times: factor });
}

/** Like `fill`, for a text with {times}. If the value of {times} is a product such as "1.2 × 10⁶" and follows a fraction bar, it is put
 * in parentheses. */
export function fillTimes(template: string, values: Record<string, string> & { times: string }): string {
  const { times: factor } = values;
  return fill(template, { ...values, times: template.includes("/{times}") && factor.includes("×") ? `(${factor})` : factor });
}

/** A text with its {names} replaced by values. */
export function fill(template: string, values: Record<string, string | number>): string {
  return template.replace(/\{(\w+)\}/g, (name, key: string) => String(values[key] ?? name));
}
