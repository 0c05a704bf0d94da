/** Changes of attention: as an address names them, and as people read them. */

import { isSite, type Change, type Explanation } from "./format";
import { pieceLabels } from "./maps";
import type { Words } from "./words";

const isPlace = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
const arePlaces = (value: unknown) => Array.isArray(value) && value.every(isPlace);

function isChange(value: unknown): value is Change {
  if (typeof value !== "object" || value === null) return false;
  const { kind, site, layer, head, query, key, weight, queries, keys } = value as Record<string, unknown>;
  if (typeof site !== "string" || !isSite(site) || ![layer, head].every((one) => one === null || one === undefined || isPlace(one))) return false;
  if (kind === "paint") return isPlace(query) && isPlace(key) && typeof weight === "number";
  return kind === "silence" || (kind === "pin" && arePlaces(queries) && arePlaces(keys));
}

/** What is no list of changes is none. */
export function readChanges(text: string): Change[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) && found.every(isChange) ? found.map((change) => ({ ...change, layer: change.layer ?? null, head: change.head ?? null })) : [];
  } catch {
    return [];
  }
}

/** Their places are those of the translation before the change. */
export function told(change: Change, explanation: Explanation, text: Words): string {
  const target = explanation.before?.target ?? explanation.target;
  const [rows, columns] = pieceLabels({ ...explanation, target }, change.site);
  const where = [text.site[change.site], change.layer === null ? text.allLayers : `${text.layer} ${change.layer}`, change.head === null ? text.allHeads : `${text.head} ${change.head}`].join(", ");
  if (change.kind === "silence") return `${text.silence}: ${where}`;
  if (change.kind === "paint") return `${text.paint}: ${rows[change.query]} → ${columns[change.key]} = ${change.weight.toFixed(2)} (${where})`;
  return `${text.pin}: ${change.queries.map((one) => rows[one]).join("")} → ${change.keys.map((one) => columns[one]).join("")} (${where})`;
}

/** How the translation was told to begin. */
export function begunWith({ target, forced }: Explanation): string {
  return target.pieces.slice(0, forced).join("").replaceAll("▁", " ").trim();
}
