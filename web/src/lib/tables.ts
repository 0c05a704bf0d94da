/** Numbers of the page as tables. */

import type { AttentionMap } from "./maps";

/** The numbers of each row; null where a cell has none. */
function rowsOf(map: AttentionMap): (number | null)[][] {
  return map.rowLabels.map((_, row) => map.columnLabels.map((_, column) => (map.empty?.[row * map.columns + column] ? null : Number(map.values[row * map.columns + column].toFixed(6)))));
}

/** A map as a table, with its rows and columns named; `corner` says what the numbers are. */
export function mapTable(map: AttentionMap, corner: string): (string | number)[][] {
  return [[corner, ...map.columnLabels], ...rowsOf(map).map((row, i) => [map.rowLabels[i], ...row.map((value) => value ?? "")])];
}

/** A map as JSON values. Only weights are called weights. */
export function mapData(map: AttentionMap): Record<string, unknown> {
  const key = (map.quantity ?? "weight") === "weight" ? "weights" : "values";
  return { rows: map.rowLabels, columns: map.columnLabels, [key]: rowsOf(map) };
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
