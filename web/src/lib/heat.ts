/** Drawing a map: on a canvas for the page, as SVG for files. Both use the same places. */

import { colourNumber, css, differenceNumber, ink, type Theme } from "./colour";
import { exact, type AttentionMap } from "./maps";
import { escape } from "./save";

export interface Layout {
  cell: number;
  left: number;
  top: number;
  width: number;
  height: number;
  upright: boolean;
  font: number;
}

export interface Look {
  theme: Theme;
  largest: number;
  signed: boolean;
}

export const FONTS = 'system-ui, "Noto Sans KR", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", sans-serif';
const INKS = { light: "#1c2430", dark: "#e6eaf0" };
const GROUNDS = { light: "#ffffff", dark: "#14171c" };
const GAP = 8;
const LONGEST = 150;

/** How wide a text is, in ems: Hangul and Chinese letters are about twice as wide as Latin ones. */
export function ems(text: string): number {
  let width = 0;
  for (const letter of text) width += letter > "\u2e7f" ? 1 : /[ilj.,'!:;|·]/.test(letter) ? 0.32 : /[mwMW@]/.test(letter) ? 0.88 : 0.58;
  return width;
}

function cut(text: string, most: number): string {
  if (ems(text) <= most) return text;
  let kept = "";
  for (const letter of text) {
    if (ems(kept + letter) > most - 1) break;
    kept += letter;
  }
  return `${kept}…`;
}

export function layOut(map: AttentionMap, room: number, largestCell = 46): Layout {
  const longest = (labels: string[]) => Math.max(1, ...labels.map(ems));
  const font = 13;
  const left = Math.min(LONGEST, longest(map.rowLabels) * font) + GAP + 4;
  const cell = Math.max(3, Math.min(largestCell, (room - left - 2) / Math.max(1, map.columns)));
  const size = Math.max(7, Math.min(font, cell * 0.95));
  const wide = longest(map.columnLabels) * size;
  const upright = wide > cell - 4;
  const top = (upright ? Math.min(LONGEST, wide) : size) + GAP + 4;
  return { cell, left, top, width: left + cell * map.columns + 2, height: top + cell * map.rows + 2, upright, font: size };
}

export function cellColour(map: AttentionMap, place: number, look: Look): number {
  const value = map.values[place];
  return look.signed ? differenceNumber(look.theme, value, look.largest) : colourNumber(look.theme, value, look.largest);
}

/** Every how-many-th label fits. */
function stride(layout: Layout): number {
  return Math.max(1, Math.ceil((layout.font * 1.05) / layout.cell));
}

/** The labels of a map, where they stand, and how they are turned. */
function* labelPlaces(map: AttentionMap, layout: Layout) {
  const { cell, left, top, font, upright } = layout;
  const every = stride(layout);
  for (let row = 0; row < map.rows; row += every)
    yield { text: cut(map.rowLabels[row], (left - GAP) / font), x: left - GAP, y: top + (row + 0.5) * cell, turn: 0, anchor: "end" as const };
  for (let column = 0; column < map.columns; column += every)
    yield {
      text: cut(map.columnLabels[column], upright ? (top - GAP) / font : cell / font + 0.3),
      x: left + (column + 0.5) * cell,
      y: top - GAP,
      turn: upright ? -90 : 0,
      anchor: upright ? ("start" as const) : ("middle" as const),
    };
}

function hasNumbers(layout: Layout): boolean {
  return layout.cell >= 34;
}

function brief(value: number): string {
  return value.toFixed(2).replace(/^(-?)0\./, "$1.");
}

export function drawMap(canvas: HTMLCanvasElement, map: AttentionMap, layout: Layout, look: Look): void {
  const sharp = Math.max(1, devicePixelRatio || 1);
  canvas.width = Math.ceil(layout.width * sharp);
  canvas.height = Math.ceil(layout.height * sharp);
  const pen = canvas.getContext("2d")!;
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  const { cell, left, top } = layout;
  drawCells(pen, map, layout, look);
  pen.textBaseline = "middle";
  pen.fillStyle = INKS[look.theme];
  pen.font = `${layout.font}px ${FONTS}`;
  for (const { text, x, y, turn, anchor } of labelPlaces(map, layout)) {
    pen.save();
    pen.translate(x, y - (turn || anchor === "end" ? 0 : layout.font / 2));
    pen.rotate((turn * Math.PI) / 180);
    pen.textAlign = anchor === "middle" ? "center" : anchor;
    pen.fillText(text, 0, 0);
    pen.restore();
  }
  if (!hasNumbers(layout)) return;
  pen.font = `${Math.min(12, cell * 0.3)}px ${FONTS}`;
  pen.textAlign = "center";
  for (let place = 0; place < map.values.length; place++) {
    if (Math.abs(map.values[place]) < 0.05) continue;
    pen.fillStyle = ink(cellColour(map, place, look));
    pen.fillText(brief(map.values[place]), left + ((place % map.columns) + 0.5) * cell, top + (Math.floor(place / map.columns) + 0.5) * cell);
  }
}

function drawCells(pen: CanvasRenderingContext2D, map: AttentionMap, { cell, left, top }: Layout, look: Look): void {
  if (!map.values.length) return;
  if (cell >= 12) {
    for (let place = 0; place < map.values.length; place++) {
      pen.fillStyle = css(cellColour(map, place, look));
      pen.beginPath();
      pen.roundRect(left + (place % map.columns) * cell + 0.5, top + Math.floor(place / map.columns) * cell + 0.5, cell - 1, cell - 1, Math.min(3, cell / 8));
      pen.fill();
    }
    return;
  }
  const image = document.createElement("canvas");
  paintPixels(image, map, look);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, left, top, cell * map.columns, cell * map.rows);
}

/** One pixel a cell: a small picture, or a large one once it is stretched. */
export function paintPixels(canvas: HTMLCanvasElement, map: Pick<AttentionMap, "rows" | "columns" | "values">, look: Look): void {
  canvas.width = Math.max(1, map.columns);
  canvas.height = Math.max(1, map.rows);
  const pen = canvas.getContext("2d")!;
  const image = pen.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let place = 0; place < map.values.length; place++) pixels[place] = cellColour(map as AttentionMap, place, look);
  pen.putImageData(image, 0, 0);
}

/** The same drawing as a file, every cell with its exact weight as a title. */
export function mapSvg(map: AttentionMap, layout: Layout, look: Look): string {
  const { cell, left, top, width, height, font } = layout;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family='${FONTS}' font-size="${font}">`,
    `<rect width="100%" height="100%" fill="${GROUNDS[look.theme]}"/>`,
  ];
  for (let place = 0; place < map.values.length; place++) {
    const row = Math.floor(place / map.columns);
    const column = place % map.columns;
    const colour = cellColour(map, place, look);
    const value = map.values[place];
    const [x, y] = [left + column * cell, top + row * cell];
    parts.push(
      `<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${(cell - 0.5).toFixed(2)}" height="${(cell - 0.5).toFixed(2)}" fill="${css(colour)}">` +
        `<title>${escape(`${map.rowLabels[row]} → ${map.columnLabels[column]}: ${exact(map, value)}`)}</title></rect>`,
    );
    if (hasNumbers(layout) && Math.abs(value) >= 0.05)
      parts.push(
        `<text x="${x + cell / 2}" y="${y + cell / 2}" font-size="${Math.min(12, cell * 0.3)}" fill="${ink(colour)}" text-anchor="middle" dominant-baseline="central">${brief(value)}</text>`,
      );
  }
  for (const { text, x, y, turn, anchor } of labelPlaces(map, layout))
    parts.push(
      `<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" fill="${INKS[look.theme]}" text-anchor="${anchor}"` +
        `${turn || anchor === "end" ? ' dominant-baseline="central"' : ""}${turn ? ` transform="rotate(${turn} ${x.toFixed(2)} ${y.toFixed(2)})"` : ""}>${escape(text)}</text>`,
    );
  return `${parts.join("")}</svg>`;
}

export function ground(theme: Theme): string {
  return GROUNDS[theme];
}
