/** The columns and the order of the list of validation sentences. */

import type { SentenceScore } from "./format";

export const SENTENCE_COLUMNS = ["source", "hypothesis", "chrf", "loss", "uncovered", "repeats", "change"] as const;
export type SentenceColumn = (typeof SENTENCE_COLUMNS)[number];

function valueOf(row: SentenceScore, column: SentenceColumn): string | number | null {
  return column === "uncovered" ? row.uncovered.length : row[column];
}

/** A cell of the list for a saved file. Numbers are not rounded, a missing number is an empty text, and words are separated by spaces. */
export function exportedCell(row: SentenceScore, column: SentenceColumn): string | number {
  return column === "uncovered" ? row.uncovered.join(" ") : (row[column] ?? "");
}

/** A sorted copy; rows without a value come last in both directions. */
export function sortSentences(rows: readonly SentenceScore[], column: SentenceColumn, descending: boolean): SentenceScore[] {
  const order = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [valueOf(a, column), valueOf(b, column)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    if (typeof left === "string" || typeof right === "string") return order * String(left).localeCompare(String(right));
    return order * (left - right);
  });
}
