/** Save what is seen as a file. */

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "font-family", "text-anchor", "dominant-baseline"];
const MARGIN = 16;
/** A text may hold what no XML can, and one such letter spoils the whole picture. */
const NO_XML = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Surrogate}/gu;
/** How large a PNG is, the largest first: browsers make no canvas above some size. */
const SIZES = [2, 1, 0.5, 0.25];

/** How a canvas is drawn as SVG, where it can be: then it stays sharp at every size. */
export const drawings = new WeakMap<HTMLCanvasElement, () => string>();

/** A drawing of the page as an SVG that stands alone: its style is written into it. */
export function standalone(drawing: SVGSVGElement, ground = "none"): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const originals = [drawing, ...drawing.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((original, i) => {
    const style = getComputedStyle(original);
    for (const name of KEPT) copies[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex", "role"]) copies[i].removeAttribute(name);
  });
  const { width, height } = drawing.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.setAttribute("style", `background: ${ground}`);
  return new XMLSerializer().serializeToString(copy);
}

/** A part of the page as an SVG: its texts, boxes and drawings where they stand, without what a person sets. */
export function pictureOf(part: HTMLElement, ground: string): string {
  const scrolled = Array.from(part.querySelectorAll(".scroll"), (one) => [one, one.scrollLeft] as const);
  part.classList.add("pictured");
  try {
    return drawn(part, ground).replace(NO_XML, "\ufffd");
  } finally {
    part.classList.remove("pictured");
    for (const [one, left] of scrolled) one.scrollLeft = left;
  }
}

function drawn(part: HTMLElement, ground: string): string {
  const own = part.getBoundingClientRect();
  const frame = new DOMRect(own.x - MARGIN, own.y - MARGIN, Math.max(own.width, part.scrollWidth) + 2 * MARGIN, own.height + 2 * MARGIN);
  const [width, height] = [Math.ceil(frame.width), Math.ceil(frame.height)];
  const found = [`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`, `<rect width="100%" height="100%" fill="${ground}"/>`];
  const walk = (node: Node): void => {
    if (node instanceof Text) found.push(...texts(node, frame));
    if (!(node instanceof Element) || node.matches(".hidden")) return;
    const at = node.getBoundingClientRect();
    if (node instanceof SVGSVGElement) found.push(placed(standalone(node), at, frame));
    else if (node instanceof HTMLCanvasElement) found.push(placed(drawings.get(node)?.() ?? image(node), at, frame));
    else {
      found.push(box(node, at, frame));
      node.childNodes.forEach(walk);
    }
  };
  part.childNodes.forEach(walk);
  return `${found.join("")}</svg>`;
}

export function escape(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

/** Each line of a text. */
function* texts(node: Text, frame: DOMRect): Generator<string> {
  const lines: { start: number; end: number; at: DOMRect }[] = [];
  const range = document.createRange();
  for (const { index: start, 0: word } of node.data.matchAll(/[^\s-]+-*|-+/g)) {
    const end = start + word.length;
    range.setStart(node, start);
    range.setEnd(node, end);
    const at = range.getBoundingClientRect();
    const last = lines.at(-1);
    if (last && Math.abs(last.at.top - at.top) < 2) last.end = end;
    else if (at.width) lines.push({ start, end, at });
  }
  const style = getComputedStyle(node.parentElement!);
  const look = `fill="${style.color}" font-size="${style.fontSize}" font-weight="${style.fontWeight}" font-style="${style.fontStyle}" font-family="${escape(style.fontFamily)}"`;
  for (const { start, end, at } of lines)
    yield `<text x="${at.left - frame.left}" y="${at.top - frame.top + at.height / 2}" dominant-baseline="central" ${look}>${escape(node.data.slice(start, end))}</text>`;
}

function box(element: Element, at: DOMRect, frame: DOMRect): string {
  const style = getComputedStyle(element);
  const line = parseFloat(style.borderTopWidth);
  if (!at.width || (style.backgroundColor === "rgba(0, 0, 0, 0)" && !line)) return "";
  const inside = `x="${at.left - frame.left + line / 2}" y="${at.top - frame.top + line / 2}" width="${at.width - line}" height="${at.height - line}" rx="${parseFloat(style.borderTopLeftRadius) || 0}"`;
  return `<rect ${inside} fill="${style.backgroundColor}" opacity="${style.opacity}" stroke="${line ? style.borderTopColor : "none"}" stroke-width="${line}" stroke-dasharray="${style.borderTopStyle === "dashed" ? "3 3" : "none"}"/>`;
}

/** Of the pixels of a canvas, each is a cell and stays one. */
function image(canvas: HTMLCanvasElement): string {
  return `<svg viewBox="0 0 ${canvas.width} ${canvas.height}" preserveAspectRatio="none"><image width="100%" height="100%" preserveAspectRatio="none" style="image-rendering: pixelated" href="${canvas.toDataURL()}"/></svg>`;
}

function placed(svg: string, at: DOMRect, frame: DOMRect): string {
  const own = svg.replace(/^<svg([^>]*?)>/, (_, rest: string) => `<svg${rest.replace(/ (width|height|xmlns)="[^"]*"/g, "")}>`);
  return own.replace("<svg", `<svg x="${at.left - frame.left}" y="${at.top - frame.top}" width="${at.width}" height="${at.height}"`);
}

export function download(name: string, data: BlobPart, type: string): void {
  const address = URL.createObjectURL(new Blob([data], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** An SVG as the bytes of a PNG, twice as large, so that it stays sharp, or as large as can be. */
export async function png(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  for (const size of SIZES) {
    canvas.width = image.width * size;
    canvas.height = image.height * size;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const made = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (made) return made;
  }
  throw new Error(`${image.width} × ${image.height}`);
}
