/** Changes to attention: their schema, their form in the address, and as text.
 *
 * The fields are those of the Python classes in src/jumok/analysis/changes.py; tests/analysis/test_change_schema.py compares them. */

import { isSite, type Explanation, type Site } from "./format";
import { tokenLabels } from "./maps";
import type { Strings } from "./strings";

export interface Silence {
  kind: "silence";
  site: Site;
  layer: number | null;
  head: number | null;
}

export interface Paint {
  kind: "paint";
  site: Site;
  layer: number | null;
  head: number | null;
  query: number;
  key: number;
  weight: number;
}

export interface Pin {
  kind: "pin";
  site: Site;
  layer: number | null;
  head: number | null;
  queries: number[];
  keys: number[];
}

export type Change = Silence | Paint | Pin;

const isIndex = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
const areIndices = (value: unknown) => Array.isArray(value) && value.every(isIndex);

function isChange(value: unknown): value is Change {
  if (typeof value !== "object" || value === null) return false;
  const { kind, site, layer, head, query, key, weight, queries, keys } = value as Record<string, unknown>;
  if (typeof site !== "string" || !isSite(site) || ![layer, head].every((index) => index === null || index === undefined || isIndex(index))) return false;
  if (kind === "paint") return isIndex(query) && isIndex(key) && typeof weight === "number";
  return kind === "silence" || (kind === "pin" && areIndices(queries) && areIndices(keys));
}

/** Parse the changes in an address; anything but a list of changes gives none. */
export function parseChanges(text: string): Change[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) && parsed.every(isChange) ? parsed.map((change) => ({ ...change, layer: change.layer ?? null, head: change.head ?? null })) : [];
  } catch {
    return [];
  }
}

/** A change as text. Its indices refer to the translation before the change. */
export function describeChange(change: Change, explanation: Explanation, text: Strings): string {
  const target = explanation.before?.target ?? explanation.target;
  const [rows, columns] = tokenLabels({ ...explanation, target }, change.site);
  const scope = [text.site[change.site], change.layer === null ? text.allLayers : `${text.layer} ${change.layer}`, change.head === null ? text.allHeads : `${text.head} ${change.head}`].join(", ");
  if (change.kind === "silence") return `${text.silence}: ${scope}`;
  if (change.kind === "paint") return `${text.paint}: ${rows[change.query]} → ${columns[change.key]} = ${change.weight.toFixed(2)} (${scope})`;
  return `${text.pin}: ${change.queries.map((query) => rows[query]).join("")} → ${change.keys.map((key) => columns[key]).join("")} (${scope})`;
}

/** The prefix that the translation was given, as text. */
export function prefixText({ target, forced }: Explanation): string {
  return target.tokens.slice(0, forced).join("").replaceAll("▁", " ").trim();
}
