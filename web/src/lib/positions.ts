/** Sine and cosine of a place, as "Attention is all you need" has them (section 3.5). */
export function sine(place: number, dimension: number, width: number): number {
  const angle = place / 10000 ** ((2 * Math.floor(dimension / 2)) / width);
  return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
}
