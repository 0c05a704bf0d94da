/** Computes which lines are drawn between a sentence and its translation, and where. */

import { fullStrength, strengthOf, type AttentionMap } from "./maps";

/** Lines between the sentence and its translation whose strength is below this value are not drawn. */
export const MIN_STRENGTH = 0.08;

export interface Line {
  /** The index of the word of the translation. */
  row: number;
  /** The index of the word of the sentence. */
  column: number;
  /** From 0 to 1. */
  strength: number;
  /** Whether the number that the line stands for is below 0. */
  negative: boolean;
  /** Whether the line is the strongest line of its row. If words wrap, only such lines are drawn all the time. */
  strongest: boolean;
}

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Point {
  x: number;
  y: number;
}

/** The width of a line in pixels. */
export const lineWidth = (strength: number) => 1 + 5 * strength;
export const lineOpacity = (strength: number) => 0.15 + 0.85 * strength;
export const MAX_LINE_WIDTH = lineWidth(1);

/** The lines of a map of cross-attention by words, the weakest first. Special tokens have no lines. */
export function linesOf(map: AttentionMap, numTargetWords: number, numSourceWords: number): Line[] {
  const lines: Line[] = [];
  const full = fullStrength(map);
  for (let row = 0; row < numTargetWords; row++) {
    let best: Line | null = null;
    for (let column = 0; column < numSourceWords; column++) {
      const value = map.values[row * map.columns + column];
      const strength = strengthOf(value, full);
      if (!(strength >= MIN_STRENGTH)) continue;
      const line = { row, column, strength, negative: value < 0, strongest: false };
      lines.push(line);
      if (!best || strength > best.strength) best = line;
    }
    if (best) best.strongest = true;
  }
  return lines.sort((a, b) => a.strength - b.strength);
}

/** The path of a curve between two points, for the attribute `d` of SVG. It leaves both points vertically. */
export function curve(from: Point, to: Point): string {
  const bend = (to.y - from.y) / 2;
  return `M ${from.x} ${from.y} C ${from.x} ${from.y + bend}, ${to.x} ${to.y - bend}, ${to.x} ${to.y}`;
}

/** The index of the box that contains the point, or else of the nearest box within `reach` pixels; −1 if there is no such box. */
export function boxAt(boxes: readonly (Box | undefined)[], { x, y }: Point, reach: number): number {
  let [best, distance] = [-1, reach];
  boxes.forEach((box, i) => {
    if (!box) return;
    const distanceToBox = Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
    if (distanceToBox < distance) [best, distance] = [i, distanceToBox];
  });
  return best;
}

/** How far a label may move to the right, in pixels, so that it does not overlap the previous label. */
const MAX_SHIFT = 14;

/** The x coordinate of the middle of each label. A label that would overlap the previous label of its row moves to the right by at most
 * `maxShift` pixels. If this is not enough, or if the label has no width, it is left out (null). */
export function labelMiddles(boxes: readonly (Box | undefined)[], widths: readonly number[], maxShift = MAX_SHIFT): (number | null)[] {
  const ends = new Map<number, number>();
  return boxes.map((box, i) => {
    if (!box || !widths[i]) return null;
    const [middle, end] = [(box.left + box.right) / 2, ends.get(Math.round(box.top)) ?? -Infinity];
    const shift = Math.max(0, end - (middle - widths[i] / 2));
    if (shift > maxShift) return null;
    ends.set(Math.round(box.top), middle + shift + widths[i] / 2 + 4);
    return middle + shift;
  });
}
