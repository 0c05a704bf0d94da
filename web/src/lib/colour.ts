/** Colours of weights: one hue from the page's ground to its ink, lighter or darker throughout, so that nobody
 * needs to tell hues apart. Differences go from blue to orange, which every kind of colour vision keeps apart. */

type Rgb = [number, number, number];

const LIGHT: Rgb[] = [[247, 249, 251], [201, 221, 238], [127, 172, 212], [49, 113, 170], [10, 46, 92]];
const DARK: Rgb[] = [[26, 30, 37], [27, 62, 97], [38, 107, 162], [104, 171, 220], [226, 243, 255]];
const LIGHT_BOTH: Rgb[] = [[22, 80, 145], [128, 176, 217], [246, 247, 248], [240, 174, 112], [173, 81, 5]];
const DARK_BOTH: Rgb[] = [[138, 196, 243], [44, 92, 139], [28, 32, 39], [138, 77, 20], [255, 178, 102]];

function scale(stops: Rgb[]): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const place = (i / 255) * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    const [red, green, blue] = stops[below].map((from, k) => Math.round(from + (stops[below + 1][k] - from) * (place - below)));
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

const scales = {
  light: { one: scale(LIGHT), both: scale(LIGHT_BOTH) },
  dark: { one: scale(DARK), both: scale(DARK_BOTH) },
};

export type Theme = keyof typeof scales;

/** A colour of a scale for each weight, little-endian RGBA as canvases store it. Small weights get more room. */
export function colourNumber(theme: Theme, weight: number, largest = 1): number {
  return scales[theme].one[Math.round(255 * Math.sqrt(Math.min(Math.max(weight / largest, 0), 1)))];
}

export function differenceNumber(theme: Theme, difference: number, largest: number): number {
  const share = Math.max(-1, Math.min(1, largest ? difference / largest : 0));
  return scales[theme].both[Math.round(127.5 + 127.5 * share)];
}

export function css(colour: number): string {
  return `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
}

/** How much light a channel gives, by the definition of WCAG. */
const linear = Float64Array.from({ length: 256 }, (_, i) => (i <= 10 ? i / 255 / 12.92 : ((i / 255 + 0.055) / 1.055) ** 2.4));

/** Black or white, whichever has the higher contrast on this colour. That is 4.5 or more only because black is black. */
export function ink(colour: number): string {
  const light = 0.2126 * linear[colour & 255] + 0.7152 * linear[(colour >> 8) & 255] + 0.0722 * linear[(colour >> 16) & 255];
  return (light + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}
