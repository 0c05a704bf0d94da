/** Makes tables and JSON values of the page's numbers, for saved files. */

import { describeChange, type Change } from "./changes";
import type { Explanation, HeadProfile } from "./format";
import { selectedHeads, type AttentionMap, type Choice } from "./maps";
import type { Strings } from "./strings";

/** The origin of saved numbers. Without it, a file of changed attention could not be distinguished from a file of the unchanged model. */
export interface Origin {
  model: string;
  source: string;
  target: string;
  /** Empty if the model is unchanged. */
  changes: Change[];
  /** How many of the first tokens are a given prefix, or stay because the changes affect only later steps. */
  forced: number;
  /** When the file was saved. */
  date: string;
}

export function originOf(explanation: Explanation, model: string): Origin {
  const { source, target, changes, forced } = explanation;
  return { model, source: source.text, target: target.text, changes, forced, date: new Date().toISOString().slice(0, 10) };
}

/** The origin of numbers in words, as the comments of a CSV file. */
export function originComments(explanation: Explanation, model: string, text: Strings): Record<string, string> {
  const { source, target, changes, forced, date } = originOf(explanation, model);
  const descriptions = changes.map((change) => describeChange(change, explanation, text)).join("; ") || "none";
  return { model, source, target, changes: descriptions, ...(forced && { forced_tokens: String(forced) }), date };
}

/** A choice as JSON values, with only the settings that have a meaning for it. `heads` is a list of [layer, head]. It is null for a
 * roll-out and for a measure of the whole model (`isOfModel`). */
export function choiceData(explanation: Explanation, choice: Choice, isOfModel = false): Record<string, unknown> {
  const { site, combination, layer, head, words, specials } = choice;
  const hasLayer = combination === "mean" || combination === "maximum";
  const settings = {
    combination,
    ...(combination === "head" && { layer: Math.max(layer, 0), head }),
    ...(hasLayer && { layer: layer < 0 ? "all" : layer }),
  };
  const heads = isOfModel || combination === "roll-out" ? null : selectedHeads(explanation, choice);
  return { site, ...(!isOfModel && settings), heads, words, specials };
}

/** The numbers of each row, rounded to six decimals; null for a cell without a number. */
function roundedRows(map: AttentionMap): (number | null)[][] {
  const numberOf = (cell: number) => (map.empty?.[cell] ? null : Number(map.values[cell].toFixed(6)));
  return map.rowLabels.map((_, row) => map.columnLabels.map((_, column) => numberOf(row * map.columns + column)));
}

/** A map as a table with labels. `corner` is the text of the top left cell, which says what the numbers are. */
export function mapTable(map: AttentionMap, corner: string): (string | number)[][] {
  return [[corner, ...map.columnLabels], ...roundedRows(map).map((row, i) => [map.rowLabels[i], ...row.map((value) => value ?? "")])];
}

/** A map as JSON values. The numbers have the key `weights` if they are weights, otherwise `values`. */
export function mapData(map: AttentionMap): Record<string, unknown> {
  const key = (map.quantity ?? "weight") === "weight" ? "weights" : "values";
  return { rows: map.rowLabels, columns: map.columnLabels, [key]: roundedRows(map) };
}

/** Head profiles as a table, with one row per head. */
export function profileTable(profiles: readonly HeadProfile[]): (string | number)[][] {
  const columns = ["model", "site", "layer", "head", "sentences", "available", "offset", "entropy", "on_special", "error", "effect", "bleu", "bleu_without", "changed"] as const;
  return [[...columns], ...profiles.map((profile) => columns.map((name) => profile[name] ?? ""))];
}

/** A table as CSV (RFC 4180). Each comment becomes a line "# name: text" before the table. Spreadsheets show these lines above the table,
 * and pandas skips them with `comment="#"`. Therefore fields with a # are quoted. If a spreadsheet would read a text as a formula, the
 * text gets an apostrophe in front. */
export function toCsv(table: readonly (readonly (string | number)[])[], comments: Readonly<Record<string, string>> = {}): string {
  const field = (value: string | number): string => {
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",#\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = Object.entries(comments).map(([name, text]) => `# ${name}: ${text.replace(/\s+/g, " ")}`);
  return [...lines, ...table.map((row) => row.map(field).join(","))].map((line) => `${line}\r\n`).join("");
}
