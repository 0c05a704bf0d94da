import { describe, expect, it } from "vitest";

import { concatenate, dot, erf, linear, logSoftmax, rowsOf, softmax, transpose } from "../src/engine/arrays";
import { base64FromBytes, bytesFromBase64, fromHalf, Weights } from "../src/engine/model_file";
import { packFloats, packWeights, rounded } from "../src/engine/packing";
import { alibiSlopes, relativeBucket } from "../src/engine/positions";
import { floats, weights } from "../src/lib/format";
import { formatNumber, percent, signed } from "../src/lib/numbers";

const f32 = (...values: number[]) => Float32Array.from(values);

describe("arrays", () => {
  it("multiplies every row by the matrix and adds the bias, even if the width is not a multiple of four", () => {
    const inputs = f32(1, 2, 3, 4, 5, 0, 0, 0, 0, 1);
    expect([...linear(inputs, f32(1, 1, 1, 1, 1, 0, 0, 0, 0, 2), f32(0.5, -1), 5)]).toEqual([15.5, 9, 1.5, 1]);
  });

  it("computes the softmax of large scores, and its logarithm", () => {
    const [scores, logs] = [f32(1000, 1000, -1000), f32(0, Math.log(3))];
    softmax(scores);
    logSoftmax(logs);
    expect([...scores]).toEqual([0.5, 0.5, 0]);
    expect(Math.exp(logs[1])).toBeCloseTo(0.75, 6);
  });

  it("computes the error function to single precision", () => {
    const known: [number, number][] = [
      [0, 0],
      [0.5, 0.5204998778130465],
      [1, 0.8427007929497149],
      [2, 0.9953222650189527],
      [2.6, 0.9997639655834707],
      [3.5, 0.9999992569016276],
      [7, 1],
    ];
    for (const [x, value] of known) for (const sign of [1, -1]) expect(erf(sign * x)).toBeCloseTo(sign * value, 9);
  });

  it("transposes a matrix, and splits it into rows and concatenates them again", () => {
    const matrix = f32(1, 2, 3, 4, 5, 6);
    expect([...transpose(matrix, 3)]).toEqual([1, 4, 2, 5, 3, 6]);
    expect([...concatenate(rowsOf(matrix, 2))]).toEqual([...matrix]);
    expect(dot(matrix, 0, matrix, 3, 3)).toBe(4 + 10 + 18);
  });
});

describe("stored numbers", () => {
  it("reads normal, subnormal, signed and infinite numbers in half precision", () => {
    expect([0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x7c00].map(fromHalf)).toEqual([1, -2, 2 ** -24, 65504, -0, Infinity]);
    expect(fromHalf(0x7e00)).toBeNaN();
  });

  it("reads eight-bit tensors with one scale per row, and decodes tied tensors only once", () => {
    // Four weights of one byte each, then a scale for each of the two rows.
    const bytes = new Uint8Array(12);
    bytes.set([127, 256 - 127, 1, 0]);
    new DataView(bytes.buffer).setFloat32(4, 0.5, true);
    new DataView(bytes.buffer).setFloat32(8, 2, true);
    const tensor = { shape: [2, 2], kind: "int8" as const, offset: 0, scales: 4 };
    const stored = new Weights({ a: tensor, b: tensor }, bytes);
    expect([...stored.get("a")]).toEqual([63.5, -63.5, 2, 0]);
    expect(stored.get("a")).toBe(stored.get("b"));
    expect(() => stored.get("c")).toThrow("no tensor c");
  });

  it("encodes bytes as base64 and back", () => {
    const bytes = Uint8Array.from({ length: 40_000 }, (_, i) => i % 256);
    expect(bytesFromBase64(base64FromBytes(bytes))).toEqual(bytes);
  });

  it("packs weights so that the page reads them with four decimals, and packs causal maps without the cells above the diagonal", () => {
    const values = [1, 0, 0.25, 0.75];
    const packed = packWeights(values, [1, 1, 2, 2]);
    expect(packed.layout).toBe("causal");
    expect(atob(packed.codes)).toHaveLength(3);
    weights(packed).forEach((weight, i) => expect(weight).toBeCloseTo(values[i], 4));
    expect(packWeights([0.5, 0.5, 0, 1], [2, 2]).layout).toBe("full");
    expect(packWeights([NaN, -1], [1, 2]).scale).toBe(1);
    expect([...floats(packFloats(f32(0.1, -2), [2]))]).toEqual([...f32(0.1, -2)]);
  });

  it("rounds to five decimals, and returns null for numbers that are not finite", () => {
    expect([rounded(1 / 3), rounded(-Infinity), rounded(NaN)]).toEqual([0.33333, null, null]);
  });
});

describe("positions", () => {
  it("`alibiSlopes` has a slope for each head even if the number of heads is not a power of two", () => {
    expect(alibiSlopes(4)).toEqual([2 ** -2, 2 ** -4, 2 ** -6, 2 ** -8]);
    expect(alibiSlopes(3)).toEqual([2 ** -4, 2 ** -8, 2 ** -2]);
  });

  it("`relativeBucket` puts distances into the buckets of T5", () => {
    expect([0, -1, 1, -7, -8, -500, 500].map((distance) => relativeBucket(distance, 32, 128, true))).toEqual([0, 1, 17, 7, 8, 15, 31]);
    expect([5, 0, -15, -16, -500].map((distance) => relativeBucket(distance, 32, 128, false))).toEqual([0, 0, 15, 16, 31]);
  });
});

describe("numbers as text", () => {
  it("`signed` writes a sign unless the number rounds to zero, and `formatNumber` writes only minus signs", () => {
    expect([signed(1.234), signed(-0.5), signed(-0.001)]).toEqual(["+1.23", "−0.50", "0.00"]);
    expect([formatNumber(2), formatNumber(null), formatNumber(-1)]).toEqual(["2.00", "–", "−1.00"]);
  });

  it("`percent` has one decimal below 9.95%, and writes tiny shares as \"< 0.1%\"", () => {
    expect([percent(0.0994), percent(0.0996), percent(1)]).toEqual(["9.9%", "10%", "100%"]);
    expect([percent(0), percent(0.0004), percent(0.0006)]).toEqual(["< 0.1%", "< 0.1%", "0.1%"]);
  });
});
