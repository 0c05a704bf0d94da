/** A picture as the source of an explanation: maps over its patches, and reading a file. */

import type { Explanation, PatchedPicture, Site } from "./format";
import { isRounded, makeMap, type Choice } from "./maps";

/** The weights of one word, or of the class, over the patches of the picture, row by row. */
export interface PictureMap {
  label: string;
  values: Float32Array;
  rounded: boolean;
}

/** The largest file that the page sends; the server has the same limit. */
export const MAX_FILE_BYTES = 16 * 2 ** 20;

/** A classifier has one map, of its class token; a captioner one per word that it wrote. */
export function isClassifier(explanation: Explanation): boolean {
  return !explanation.attention.cross;
}

/** The site whose keys are patches and whose queries are words, or the class token. */
export function pictureSite(explanation: Explanation): Site {
  return isClassifier(explanation) ? "encoder" : "cross";
}

/** The maps of a choice at `pictureSite`. */
export function pictureMaps(explanation: Explanation, choice: Choice): PictureMap[] {
  const { picture, target } = explanation;
  const map = makeMap(explanation, { ...choice, words: true });
  const packed = explanation.attention[choice.site];
  if (!picture || !map || !packed) return [];
  const labels = isClassifier(explanation) ? [target.text] : target.words;
  const first = map.columns - picture.rows * picture.columns; // the class token is no patch
  return labels.map((label, row) => ({
    label,
    values: map.values.slice(row * map.columns + first, (row + 1) * map.columns),
    rounded: isRounded(packed),
  }));
}

export function strongestPatch(map: PictureMap): number {
  return map.values.indexOf(Math.max(...map.values));
}

/** The place of a patch, counted from 1. */
export function placeOf(picture: PatchedPicture, patch: number): { row: number; column: number } {
  return { row: Math.floor(patch / picture.columns) + 1, column: (patch % picture.columns) + 1 };
}

/** A file as a data: URL, which is how it is sent. */
export function readDataUrl(file: File): Promise<string> {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}
