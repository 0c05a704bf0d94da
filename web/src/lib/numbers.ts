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

/** A share as per cent: below 9.95 % with one decimal, above without any, so that "10.0 %" does not occur. */
export function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}
