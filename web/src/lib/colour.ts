/** Colour scales.
 *
 * The scale of weights has one hue. Its lightness runs from that of the background to that of the text, so nobody needs to distinguish hues.
 * The scale of differences and nats runs from blue to orange, which people with any kind of colour vision can distinguish. */

type Rgb = [number, number, number];

const LIGHT: Rgb[] = [[247, 249, 251], [201, 221, 238], [127, 172, 212], [49, 113, 170], [10, 46, 92]];
const DARK: Rgb[] = [[26, 30, 37], [27, 62, 97], [38, 107, 162], [104, 171, 220], [226, 243, 255]];
const LIGHT_DIVERGING: Rgb[] = [[22, 80, 145], [128, 176, 217], [246, 247, 248], [240, 174, 112], [173, 81, 5]];
const DARK_DIVERGING: Rgb[] = [[138, 196, 243], [44, 92, 139], [28, 32, 39], [138, 77, 20], [255, 178, 102]];

function scale(stops: Rgb[]): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const position = (i / 255) * (stops.length - 1);
    const below = Math.min(Math.floor(position), stops.length - 2);
    const [red, green, blue] = stops[below].map((from, k) => Math.round(from + (stops[below + 1][k] - from) * (position - below)));
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

const scales = {
  light: { sequential: scale(LIGHT), diverging: scale(LIGHT_DIVERGING) },
  dark: { sequential: scale(DARK), diverging: scale(DARK_DIVERGING) },
};

export type Theme = keyof typeof scales;

/** The colour of a weight as a number whose bytes are red, green, blue and alpha in little-endian order, as in the pixels of a canvas. The
 * square root spreads small weights. */
export function weightColour(theme: Theme, weight: number, scaleMax = 1): number {
  return scales[theme].sequential[Math.round(255 * Math.sqrt(Math.min(Math.max(weight / scaleMax, 0), 1)))];
}

export function differenceColour(theme: Theme, difference: number, scaleMax: number): number {
  const share = Math.max(-1, Math.min(1, scaleMax ? difference / scaleMax : 0));
  return scales[theme].diverging[Math.round(127.5 + 127.5 * share)];
}

/** The colour of a number of nats. The square root spreads small changes on both sides of 0. */
export function natsColour(theme: Theme, nats: number, scaleMax: number): number {
  return differenceColour(theme, Math.sign(nats) * Math.sqrt(Math.abs(nats) / scaleMax), 1);
}

export function css(colour: number): string {
  return `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
}

/** For each value of an sRGB channel, its linear value, from which WCAG computes the relative luminance. */
const linearValues = Float64Array.from({ length: 256 }, (_, i) => (i <= 10 ? i / 255 / 12.92 : ((i / 255 + 0.055) / 1.055) ** 2.4));

/** Black or white, whichever has the higher contrast on this colour; that contrast is at least 4.5. */
export function textColour(colour: number): string {
  const luminance = 0.2126 * linearValues[colour & 255] + 0.7152 * linearValues[(colour >> 8) & 255] + 0.0722 * linearValues[(colour >> 16) & 255];
  return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}
