/** Draws a map: on a canvas for the page, and as SVG for files. Both drawings have the same layout. */

import { css, differenceColour, natsColour, textColour, weightColour, type Theme } from "./colour";
import { formatCell, type AttentionMap } from "./maps";
import { escape } from "./save";

/** The layout of a map, in pixels. */
export interface Layout {
  cellWidth: number;
  /** The height of a cell. In maps of long sentences, cells are higher than wide, so that the labels of rows are readable. */
  rowHeight: number;
  /** The x coordinate of the first cell. The labels of rows are to its left. */
  left: number;
  /** The y coordinate of the first cell. The labels of columns are above it. */
  top: number;
  width: number;
  height: number;
  /** The angle of the labels of the columns, in degrees. */
  rotation: 0 | -45 | -90;
  /** The font size of the labels of columns. */
  font: number;
  /** The font size of the labels of rows. */
  rowFont: number;
}

export interface Style {
  theme: Theme;
  /** The value at the end of the colour scale. */
  scaleMax: number;
  /** Whether the colour scale has a side for numbers below 0. */
  signed: boolean;
}

export const FONTS = 'system-ui, "Noto Sans KR", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", sans-serif';
const TEXT_COLOURS = { light: "#1c2430", dark: "#e6eaf0" };
const BACKGROUNDS = { light: "#ffffff", dark: "#14171c" };
/** The colours of the diagonal line in an empty cell (`map.empty`). */
const STROKE_COLOURS = { light: "#b4bcc6", dark: "#59636f" };
/** The font size of labels. Labels of smaller cells are smaller. */
export const FONT_SIZE = 13;
/** The smallest font size of labels. If cells are too small for it, some labels are left out. */
export const MIN_FONT_SIZE = 9;
/** The distance between a label and the cells, in pixels. */
const GAP = 8;
/** The largest length of a label, in pixels. Longer labels are cut off. */
const MAX_LABEL = 150;
/** Below this available width in pixels, a screen is narrow. */
const NARROW = 480;
/** The sine and cosine of the angle of slanted labels. */
const SLANT = Math.SQRT1_2;
/** The smallest width of a cell, in ems, for which labels are slanted. */
const MIN_SLANTED = 1.6;
/** The height that a row needs for its label. Rows are lower if all rows together would be higher than `MAX_ROWS_HEIGHT`. */
export const LABEL_HEIGHT = 16;
const MAX_ROWS_HEIGHT = 960;
/** A number is written into its cell if its absolute value is at least this and the cell is wide enough. */
const MIN_WRITTEN = 0.05;

/** The estimated width of a text in ems: Hangul and Chinese characters are about twice as wide as Latin ones. */
export function widthInEms(text: string): number {
  let width = 0;
  for (const character of text) width += character > "\u2e7f" ? 1 : /[ilj.,'!:;|·]/.test(character) ? 0.32 : /[mwMW@]/.test(character) ? 0.88 : 0.58;
  return width;
}

function truncate(text: string, maxEms: number): string {
  if (widthInEms(text) <= maxEms) return text;
  let start = "";
  for (const character of text) {
    if (widthInEms(start + character) > maxEms - 1) break;
    start += character;
  }
  return `${start}…`;
}

/** Compute the layout of a map. `otherLabels` are the row labels of a second map whose columns should be aligned with this map. */
export function computeLayout(map: AttentionMap, availableWidth: number, maxCellWidth = 46, otherLabels: string[] = []): Layout {
  const maxWidth = (labels: string[]) => Math.max(1, ...labels.map(widthInEms));
  const left = Math.min(MAX_LABEL, maxWidth([...map.rowLabels, ...otherLabels]) * FONT_SIZE) + GAP + 4;
  const minCellWidth = availableWidth < NARROW ? 10 : 4; // on a narrow screen the map scrolls
  const room = availableWidth - left - 2;
  const within = (width: number) => Math.max(minCellWidth, Math.min(maxCellWidth, width));
  /** How far the label of the last column, if slanted, reaches beyond the middle of this column. */
  const reach = (Math.min(MAX_LABEL, widthInEms(map.columnLabels.at(-1) ?? "") * FONT_SIZE) + FONT_SIZE / 2) * SLANT;
  /** The width of a cell if no label is slanted. */
  const upright = within(room / Math.max(1, map.columns));
  const isSlanted = upright >= MIN_SLANTED * FONT_SIZE && maxWidth(map.columnLabels) * FONT_SIZE > upright - 4;
  const cellWidth = isSlanted ? Math.min(upright, within((room - reach) / Math.max(0.5, map.columns - 0.5))) : upright;
  const size = Math.max(MIN_FONT_SIZE, Math.min(FONT_SIZE, cellWidth * 0.95));
  const labelWidth = maxWidth(map.columnLabels) * size;
  // Slanted labels are easier to read than vertical labels, above all in Hangul, but need more room.
  const rotation = labelWidth <= cellWidth - 4 ? 0 : cellWidth >= MIN_SLANTED * size ? -45 : -90;
  const visible = Math.min(MAX_LABEL, labelWidth);
  const top = (rotation === 0 ? size : rotation === -90 ? visible : (visible + size) * SLANT) + GAP + 4;
  const overhang = rotation === -45 ? Math.max(0, reach - cellWidth / 2) : 0;
  const rowHeight = Math.max(cellWidth, Math.min(LABEL_HEIGHT, MAX_ROWS_HEIGHT / Math.max(1, map.rows)));
  const rowFont = Math.max(MIN_FONT_SIZE, Math.min(FONT_SIZE, rowHeight * 0.95));
  const [width, height] = [left + cellWidth * map.columns + overhang + 2, top + rowHeight * map.rows + 2];
  return { cellWidth, rowHeight, left, top, width, height, rotation, font: size, rowFont };
}

export function cellColour(map: AttentionMap, index: number, style: Style): number {
  const value = map.values[index];
  if (map.quantity === "nats") return natsColour(style.theme, value, style.scaleMax);
  return style.signed ? differenceColour(style.theme, value, style.scaleMax) : weightColour(style.theme, value, style.scaleMax);
}

/** The smallest n such that labels do not overlap if only every n-th label is drawn. */
function labelStride(font: number, cellSize: number): number {
  return Math.max(1, Math.ceil((font * 1.05) / cellSize));
}

/** The labels of a map with their positions and rotations. */
function* labelPositions(map: AttentionMap, layout: Layout) {
  const { cellWidth, rowHeight, left, top, font, rowFont, rotation } = layout;
  for (let row = 0; row < map.rows; row += labelStride(rowFont, rowHeight))
    yield { text: truncate(map.rowLabels[row], (left - GAP) / rowFont), x: left - GAP, y: top + (row + 0.5) * rowHeight, rotation: 0, anchor: "end" as const, font: rowFont };
  for (let column = 0; column < map.columns; column += labelStride(font, cellWidth))
    yield {
      font,
      text: truncate(map.columnLabels[column], rotation ? MAX_LABEL / font : cellWidth / font + 0.3),
      x: left + (column + 0.5) * cellWidth,
      y: top - GAP,
      rotation,
      anchor: rotation ? ("start" as const) : ("middle" as const),
    };
}

/** The smallest width of a cell in which a number is readable. */
const MIN_CELL_WITH_NUMBER = 34;
/** The smallest width of a cell that is drawn with a gap around it. Smaller cells are drawn as pixels of an enlarged image. */
const MIN_CELL_WITH_GAP = 12;

function hasNumbers(layout: Layout): boolean {
  return layout.cellWidth >= MIN_CELL_WITH_NUMBER;
}

/** A number as text that is short enough for a cell. */
function shortNumber({ quantity }: AttentionMap, value: number): string {
  if (quantity === "nats" && Math.abs(value) >= 0.995) return value.toFixed(Math.abs(value) < 9.95 ? 1 : 0).replace("-", "−");
  return value.toFixed(2).replace(/^(-?)0\./, "$1.").replace("-", "−");
}

export function drawMap(canvas: HTMLCanvasElement, map: AttentionMap, layout: Layout, style: Style): void {
  const pixelRatio = Math.max(1, devicePixelRatio || 1);
  canvas.width = Math.ceil(layout.width * pixelRatio);
  canvas.height = Math.ceil(layout.height * pixelRatio);
  const context = canvas.getContext("2d")!;
  context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
  const { cellWidth, rowHeight, left, top } = layout;
  drawCells(context, map, layout, style);
  context.textBaseline = "middle";
  context.fillStyle = TEXT_COLOURS[style.theme];
  for (const { text, x, y, rotation, anchor, font } of labelPositions(map, layout)) {
    context.save();
    context.font = `${font}px ${FONTS}`;
    context.translate(x, y - (rotation || anchor === "end" ? 0 : font / 2));
    context.rotate((rotation * Math.PI) / 180);
    context.textAlign = anchor === "middle" ? "center" : anchor;
    context.fillText(text, 0, 0);
    context.restore();
  }
  if (!hasNumbers(layout)) return;
  context.font = `${Math.min(12, cellWidth * 0.3)}px ${FONTS}`;
  context.textAlign = "center";
  for (let i = 0; i < map.values.length; i++) {
    if (map.empty?.[i] || Math.abs(map.values[i]) < MIN_WRITTEN) continue;
    context.fillStyle = textColour(cellColour(map, i, style));
    context.fillText(shortNumber(map, map.values[i]), left + ((i % map.columns) + 0.5) * cellWidth, top + (Math.floor(i / map.columns) + 0.5) * rowHeight);
  }
}

function drawCells(context: CanvasRenderingContext2D, map: AttentionMap, { cellWidth, rowHeight, left, top }: Layout, style: Style): void {
  if (!map.values.length) return;
  if (cellWidth >= MIN_CELL_WITH_GAP) {
    context.strokeStyle = STROKE_COLOURS[style.theme];
    for (let i = 0; i < map.values.length; i++) {
      const [x, y] = [left + (i % map.columns) * cellWidth, top + Math.floor(i / map.columns) * rowHeight];
      context.beginPath();
      if (map.empty?.[i]) {
        context.moveTo(x + cellWidth * 0.35, y + rowHeight * 0.65);
        context.lineTo(x + cellWidth * 0.65, y + rowHeight * 0.35);
        context.stroke();
        continue;
      }
      context.fillStyle = css(cellColour(map, i, style));
      context.roundRect(x + 0.5, y + 0.5, cellWidth - 1, rowHeight - 1, Math.min(3, cellWidth / 8));
      context.fill();
    }
    return;
  }
  const image = document.createElement("canvas");
  drawPixels(image, map, style);
  context.imageSmoothingEnabled = false;
  context.drawImage(image, left, top, cellWidth * map.columns, rowHeight * map.rows);
}

/** Draw one pixel per cell. CSS or the caller enlarges the canvas. */
export function drawPixels(canvas: HTMLCanvasElement, map: Pick<AttentionMap, "rows" | "columns" | "values" | "empty">, style: Style): void {
  canvas.width = Math.max(1, map.columns);
  canvas.height = Math.max(1, map.rows);
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < map.values.length; i++) pixels[i] = map.empty?.[i] ? 0 : cellColour(map as AttentionMap, i, style); // 0 is transparent
  context.putImageData(image, 0, 0);
}

/** A drawing like that of `drawMap`, as SVG. Every cell that is not empty has a tooltip with its number, even if the number
 * is not written into the cell. */
export function mapSvg(map: AttentionMap, layout: Layout, style: Style): string {
  const { cellWidth, rowHeight, left, top, width, height } = layout;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family='${FONTS}'>`,
    `<rect width="100%" height="100%" fill="${BACKGROUNDS[style.theme]}"/>`,
  ];
  for (let i = 0; i < map.values.length; i++) {
    const row = Math.floor(i / map.columns);
    const column = i % map.columns;
    const colour = cellColour(map, i, style);
    const value = map.values[i];
    const [x, y] = [left + column * cellWidth, top + row * rowHeight];
    if (map.empty?.[i]) {
      parts.push(`<path d="M ${(x + cellWidth * 0.35).toFixed(2)} ${(y + rowHeight * 0.65).toFixed(2)} L ${(x + cellWidth * 0.65).toFixed(2)} ${(y + rowHeight * 0.35).toFixed(2)}" stroke="${STROKE_COLOURS[style.theme]}"/>`);
      continue;
    }
    parts.push(
      `<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${(cellWidth - 0.5).toFixed(2)}" height="${(rowHeight - 0.5).toFixed(2)}" fill="${css(colour)}">` +
        `<title>${escape(`${map.rowLabels[row]} → ${map.columnLabels[column]}: ${formatCell(map, i)}`)}</title></rect>`,
    );
    if (hasNumbers(layout) && Math.abs(value) >= MIN_WRITTEN)
      parts.push(
        `<text x="${x + cellWidth / 2}" y="${y + rowHeight / 2}" font-size="${Math.min(12, cellWidth * 0.3)}" fill="${textColour(colour)}" text-anchor="middle" dominant-baseline="central">${shortNumber(map, value)}</text>`,
      );
  }
  for (const { text, x, y, rotation, anchor, font } of labelPositions(map, layout))
    parts.push(
      `<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" font-size="${font}" fill="${TEXT_COLOURS[style.theme]}" text-anchor="${anchor}"` +
        `${rotation || anchor === "end" ? ' dominant-baseline="central"' : ""}${rotation ? ` transform="rotate(${rotation} ${x.toFixed(2)} ${y.toFixed(2)})"` : ""}>${escape(text)}</text>`,
    );
  return `${parts.join("")}</svg>`;
}

export function background(theme: Theme): string {
  return BACKGROUNDS[theme];
}

/** The cell or the row label under the pointer. */
export interface PointedCell {
  row: number;
  /** 0 for the label of a row. */
  column: number;
  isLabel?: boolean;
}

export function isSameCell(a: PointedCell | null, b: PointedCell | null): boolean {
  return a?.row === b?.row && a?.column === b?.column && Boolean(a?.isLabel) === Boolean(b?.isLabel);
}
