/** Numbers of the page as tables. */

import type { AttentionMap } from "./maps";

/** A map as a table, with its rows and columns named. */
export function mapTable(map: AttentionMap): (string | number)[][] {
  const rows = map.rowLabels.map((label, row) => [label, ...map.values.subarray(row * map.columns, (row + 1) * map.columns)].map(short));
  return [["", ...map.columnLabels], ...rows];
}

/** A map as JSON values. */
export function mapData(map: AttentionMap): { rows: string[]; columns: string[]; weights: number[][] } {
  const weights = map.rowLabels.map((_, row) => Array.from(map.values.subarray(row * map.columns, (row + 1) * map.columns), (value) => Number(value.toFixed(6))));
  return { rows: map.rowLabels, columns: map.columnLabels, weights };
}

function short(value: string | number): string | number {
  return typeof value === "number" ? Number(value.toFixed(6)) : value;
}

/** A table as CSV (RFC 4180). A text that a spreadsheet would take for a formula gets a quote mark before it. */
export function toCsv(table: readonly (readonly (string | number)[])[]): string {
  const field = (value: string | number): string => {
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return table.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}
