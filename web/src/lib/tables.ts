/** Numbers of the page as tables. */

import { describeChange, type Change } from "./changes";
import type { Explanation, HeadProfile } from "./format";
import { selectedHeads, type AttentionMap, type Choice } from "./maps";
import type { Strings } from "./strings";

/** What saved numbers are of: without it, a file of changed attention looks like one of the unchanged model. */
export interface Origin {
  model: string;
  source: string;
  target: string;
  /** Empty: the model as it is. */
  changes: Change[];
  /** How many of the first tokens were given, or were kept because the changes affect later steps. */
  forced: number;
  /** When the file was saved. */
  date: string;
}

export function originOf(explanation: Explanation, model: string): Origin {
  const { source, target, changes, forced } = explanation;
  return { model, source: source.text, target: target.text, changes, forced, date: new Date().toISOString().slice(0, 10) };
}

/** The same for people, as the comments of a CSV file. */
export function originComments(explanation: Explanation, model: string, text: Strings): Record<string, string> {
  const { source, target, changes, forced, date } = originOf(explanation, model);
  return { model, source, target, changes: changes.map((change) => describeChange(change, explanation, text)).join("; ") || "none", ...(forced && { forced_tokens: String(forced) }), date };
}

/** What a choice shows: only the settings that have a meaning in it. `heads`, [layer, head], are null for a roll-out and for a measure of the whole model. */
export function choiceData(explanation: Explanation, { site, combination, layer, head, words, specials }: Choice, isOfModel = false): Record<string, unknown> {
  const ofHeads = { combination, ...(combination === "head" && { layer: Math.max(layer, 0), head }), ...((combination === "mean" || combination === "maximum") && { layer: layer < 0 ? "all" : layer }) };
  const heads = isOfModel || combination === "roll-out" ? null : selectedHeads(explanation, { site, combination, layer, head, words, specials });
  return { site, ...(!isOfModel && ofHeads), heads, words, specials };
}

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

/** Heads over the validation set: one row per head, with all its numbers. */
export function profileTable(profiles: readonly HeadProfile[]): (string | number)[][] {
  const columns = ["model", "site", "layer", "head", "sentences", "available", "offset", "entropy", "on_special", "error", "effect", "bleu", "bleu_without", "changed"] as const;
  return [[...columns], ...profiles.map((profile) => columns.map((name) => profile[name] ?? ""))];
}

/** A table as CSV (RFC 4180), after a line "# name: text" per comment: spreadsheets show these lines above the table, and pandas skips them
 * with `comment="#"`, so other fields that have a # are quoted. A text that a spreadsheet would take for a formula gets a quote mark before it. */
export function toCsv(table: readonly (readonly (string | number)[])[], comments: Readonly<Record<string, string>> = {}): string {
  const field = (value: string | number): string => {
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",#\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = Object.entries(comments).map(([name, text]) => `# ${name}: ${text.replace(/\s+/g, " ")}`);
  return [...lines, ...table.map((row) => row.map(field).join(","))].map((line) => `${line}\r\n`).join("");
}
