/** Saves a panel as an SVG or PNG file. */

const STYLE_PROPERTIES = [
  ...["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "vector-effect", "opacity"],
  ...["font-size", "font-weight", "font-family", "text-anchor", "dominant-baseline"],
];
const MARGIN = 16;
/** Characters that are not allowed in XML. A single such character makes a file invalid. */
const NOT_XML = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Surrogate}/gu;
/** The scales that are tried for a PNG, the largest first, because browsers limit the size of a canvas. */
const SCALES = [2, 1, 0.5, 0.25];

/** For each canvas: a function that returns the same drawing as SVG, which is sharp at every size. */
export const svgDrawings = new WeakMap<HTMLCanvasElement, () => string>();

/** An SVG element of the page as a standalone document, with its computed style. */
export function standaloneSvg(drawing: SVGSVGElement, background = "none"): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const originals = [drawing, ...drawing.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((original, i) => {
    const style = getComputedStyle(original);
    for (const name of STYLE_PROPERTIES) copies[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex", "role"]) copies[i].removeAttribute(name);
  });
  const { width, height } = drawing.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("overflow", getComputedStyle(drawing).overflow); // a label may extend beyond the edge
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.style.background = background; // the page's policy forbids setting the attribute `style`
  return new XMLSerializer().serializeToString(copy);
}

/** An element of the page as SVG: its texts, boxes and drawings. Elements with the class "hidden" are left out. */
export function renderSvg(root: HTMLElement, background: string): string {
  // The class "as-figure" makes everything visible without scrolling, so the browser resets how far each element is scrolled.
  const scrolled = Array.from(root.querySelectorAll(".scroll"), (element) => [element, element.scrollLeft] as const);
  root.classList.add("as-figure");
  try {
    return drawElement(root, background).replace(NOT_XML, "\ufffd");
  } finally {
    root.classList.remove("as-figure");
    for (const [element, left] of scrolled) element.scrollLeft = left;
  }
}

function drawElement(root: HTMLElement, background: string): string {
  const bounds = root.getBoundingClientRect();
  const frame = new DOMRect(bounds.x - MARGIN, bounds.y - MARGIN, Math.max(bounds.width, root.scrollWidth) + 2 * MARGIN, bounds.height + 2 * MARGIN);
  const parts: string[] = [];
  /** The right and bottom edges of what has been drawn so far. */
  let [right, bottom] = [0, 0];
  const add = (part: string, rect: DOMRect): void => {
    if (!part) return;
    parts.push(part);
    [right, bottom] = [Math.max(right, rect.right - frame.left), Math.max(bottom, rect.bottom - frame.top)];
  };
  const walk = (node: Node): void => {
    if (node instanceof Text) for (const { text, rect } of textLines(node, frame)) add(text, rect);
    if (!(node instanceof Element) || node.matches(".hidden")) return;
    const rect = node.getBoundingClientRect();
    if (node instanceof SVGSVGElement) {
      if (rect.width) add(positioned(standaloneSvg(node), rect, frame), rect);
    } else if (node instanceof HTMLCanvasElement) {
      if (rect.width) add(positioned(svgDrawings.get(node)?.() ?? image(node), rect, frame), rect);
    } else {
      const { opacity } = getComputedStyle(node);
      if (opacity !== "1") parts.push(`<g opacity="${opacity}">`);
      add(box(node, rect, frame), rect);
      node.childNodes.forEach(walk);
      if (opacity !== "1") parts.push("</g>");
    }
  };
  root.childNodes.forEach(walk);
  const [width, height] = [Math.ceil(right + MARGIN), Math.ceil(bottom + MARGIN)];
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`;
  return `${head}<rect width="100%" height="100%" fill="${background}"/>${parts.join("")}</svg>`;
}

export function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** One SVG text per line of a text node. */
function* textLines(node: Text, frame: DOMRect): Generator<{ text: string; rect: DOMRect }> {
  const lines: { start: number; end: number; rect: DOMRect }[] = [];
  const range = document.createRange();
  // A line can break at white space and after hyphens.
  for (const { index: start, 0: word } of node.data.matchAll(/[^\s-]+-*|-+/g)) {
    const end = start + word.length;
    range.setStart(node, start);
    range.setEnd(node, end);
    const rect = range.getBoundingClientRect();
    const last = lines.at(-1);
    if (last && Math.abs(last.rect.top - rect.top) < 2) [last.end, last.rect] = [end, new DOMRect(last.rect.x, last.rect.y, rect.right - last.rect.x, last.rect.height)];
    else if (rect.width) lines.push({ start, end, rect });
  }
  const style = getComputedStyle(node.parentElement!);
  const attributes = `fill="${style.color}" font-size="${style.fontSize}" font-weight="${style.fontWeight}" font-style="${style.fontStyle}" font-family="${escape(style.fontFamily)}" text-decoration="${style.textDecorationStyle === "solid" ? style.textDecorationLine : "none"}"`;
  for (const { start, end, rect } of lines)
    yield { rect, text: `<text x="${rect.left - frame.left}" y="${rect.top - frame.top + rect.height / 2}" dominant-baseline="central" ${attributes}>${escape(node.data.slice(start, end))}</text>` };
}

/** The background and the border of an element; empty if it has neither. */
function box(element: Element, rect: DOMRect, frame: DOMRect): string {
  const style = getComputedStyle(element);
  const border = parseFloat(style.borderTopWidth);
  if (rect.width && style.backgroundImage.startsWith("repeating-linear-gradient")) return hatching(style.backgroundImage, rect, frame);
  if (!rect.width || (style.backgroundColor === "rgba(0, 0, 0, 0)" && !border)) return "";
  /** The attributes of the rectangle. Its edge is the middle of the border, because SVG draws half of a stroke on each side of the edge. */
  const inside = `x="${rect.left - frame.left + border / 2}" y="${rect.top - frame.top + border / 2}" width="${rect.width - border}" height="${rect.height - border}" rx="${parseFloat(style.borderTopLeftRadius) || 0}"`;
  return `<rect ${inside} fill="${style.backgroundColor}" stroke="${border ? style.borderTopColor : "none"}" stroke-width="${border}" stroke-dasharray="${style.borderTopStyle === "dashed" ? "3 3" : "none"}"/>`;
}

/** The stripes of a silenced head (HeadStrip.svelte) in the colour of this gradient. They are 6 pixels wide, 6 pixels apart and rise to
 * the right. */
function hatching(gradient: string, { left, top, width, height }: DOMRect, frame: DOMRect): string {
  const colour = /(rgb|color)a?\([^)]*\)/.exec(gradient)?.[0] ?? "none";
  const stripes: string[] = [];
  for (let x = width + height - 3 * Math.SQRT2; x > -6; x -= 12 * Math.SQRT2) stripes.push(`M ${x.toFixed(1)} 0 l ${-height} ${height}`);
  return `<svg x="${left - frame.left}" y="${top - frame.top}" width="${width}" height="${height}"><path d="${stripes.join(" ")}" stroke="${colour}" stroke-width="6"/></svg>`;
}

/** A canvas with one pixel per cell as an SVG image. Its cells stay sharp if the image is enlarged. */
function image(canvas: HTMLCanvasElement): string {
  return `<svg viewBox="0 0 ${canvas.width} ${canvas.height}" preserveAspectRatio="none"><image width="100%" height="100%" preserveAspectRatio="none" image-rendering="pixelated" href="${canvas.toDataURL()}"/></svg>`;
}

/** An SVG at the place and in the size of `rect`. Coordinates are relative to `frame`. */
function positioned(svg: string, rect: DOMRect, frame: DOMRect): string {
  const unsized = svg.replace(/^<svg([^>]*?)>/, (_, rest: string) => `<svg${rest.replace(/ (width|height|xmlns)="[^"]*"/g, "")}>`);
  return unsized.replace("<svg", `<svg x="${rect.left - frame.left}" y="${rect.top - frame.top}" width="${rect.width}" height="${rect.height}"`);
}

export function download(name: string, data: BlobPart, type: string): void {
  const address = URL.createObjectURL(new Blob([data], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** An SVG as PNG, at the largest of the `SCALES` that the browser supports. Throws an error with the size of the SVG if there is none. */
export async function renderPng(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  for (const scale of SCALES) {
    canvas.width = image.width * scale;
    canvas.height = image.height * scale;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (blob) return blob;
  }
  throw new Error(`${image.width} × ${image.height}`);
}
