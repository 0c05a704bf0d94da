/** Computes maps over the patches of a picture, and reads picture files. */

import type { Explanation, PatchedPicture, Site } from "./format";
import { isRounded, makeMap, type Choice } from "./maps";

/** The weights of one word, or of the class, over the patches of the picture, row by row. */
export interface PictureMap {
  label: string;
  values: Float32Array;
  rounded: boolean;
}

/** The largest picture file that the page sends. Its `data:` URL is a third longer than the file. This is still below the server's limit,
 * MAX_PICTURE_CHARACTERS in src/jumok/server/viewer/service.py. */
export const MAX_FILE_BYTES = 16 * 2 ** 20;

/** Whether a model that reads pictures is a classifier. A classifier has one map, the map of its class token. A model that writes captions
 * has one map for each word. */
export function isClassifier(explanation: Explanation): boolean {
  return !explanation.attention.cross;
}

/** The site whose keys are patches. Its queries are words, or the class token of a classifier. */
export function pictureSite(explanation: Explanation): Site {
  return isClassifier(explanation) ? "encoder" : "cross";
}

/** The maps over the picture, one per word or class. The site of the choice must be `pictureSite`. */
export function pictureMaps(explanation: Explanation, choice: Choice): PictureMap[] {
  const { picture, target } = explanation;
  const map = makeMap(explanation, { ...choice, words: true });
  const packed = explanation.attention[choice.site];
  if (!picture || !map || !packed) return [];
  const labels = isClassifier(explanation) ? [target.text] : target.words;
  const first = map.columns - picture.rows * picture.columns; // 1 if the first column is the class token, otherwise 0
  return labels.map((label, row) => ({
    label,
    values: map.values.slice(row * map.columns + first, (row + 1) * map.columns),
    rounded: isRounded(packed),
  }));
}

export function strongestPatch(map: PictureMap): number {
  return map.values.indexOf(Math.max(...map.values));
}

/** The row and the column of a patch, counted from 1. */
export function placeOf(picture: PatchedPicture, patch: number): { row: number; column: number } {
  return { row: Math.floor(patch / picture.columns) + 1, column: (patch % picture.columns) + 1 };
}

/** Read a file as a `data:` URL. */
export function readDataUrl(file: File): Promise<string> {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}
