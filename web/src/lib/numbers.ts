/** Numbers as text. */

/** With its sign, and a minus as wide as a plus; rounded to zero, without a sign. */
export function signed(value: number, digits = 2): string {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

/** Without a plus, but with a minus; a dash if there is no number. */
export function formatNumber(value: number | null | undefined, digits = 2): string {
  return value === null || value === undefined ? "–" : signed(value, digits).replace("+", "");
}

/** Below 10 % with one decimal: from 0.0995 on, one decimal would be rounded to "10.0 %". */
export function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}
