import { describe, expect, it } from "vitest";

import { comparedNames, comparisonCaptions, mapDifference, whyNoDifference } from "../src/lib/comparison";
import type { Explanation } from "../src/lib/format";
import { mapFrom } from "../src/lib/maps";

const explanation = (name: string, target: string, picture?: object) => ({ source: { text: "I go." }, target: { text: target }, facts: { name }, picture }) as unknown as Explanation;
const map = (rows: string[], value: number) => mapFrom(Float32Array.from(rows, () => value), rows, ["x"]);

describe("a comparison", () => {
  it("subtracts maps of the same rows and columns", () => {
    expect(mapDifference(map(["a"], 0.25), map(["a"], 0.75))).toMatchObject({ values: Float32Array.of(0.5), quantity: "difference" });
    expect([mapDifference(map(["a"], 1), map(["b"], 1)), mapDifference(map(["a"], 1), null)]).toEqual([null, null]);
    const [oneRow, twoRows] = [mapFrom(new Float32Array(2), ["a"], ["0", "b"]), mapFrom(new Float32Array(2), ["a", "0"], ["b"])];
    expect(mapDifference(oneRow, twoRows)).toBeNull();
  });

  it("gives the reason if two maps cannot be subtracted", () => {
    const [same, other] = [[explanation("a", "나는 간다."), explanation("b", "나는 간다.")], [explanation("a", "나는 간다."), explanation("b", "간다.")]];
    expect(whyNoDifference(same, [map(["a"], 1), null])).toEqual({ reason: "noSuchAttention", model: 1 });
    expect(whyNoDifference(other, [null, map(["a"], 1)])).toEqual({ reason: "noSuchAttention", model: 0 });
    expect(whyNoDifference(other, [map(["a"], 1), map(["b"], 1)])).toEqual({ reason: "otherTranslation" });
    expect(whyNoDifference(same, [map(["a"], 1), map(["b"], 1)])).toEqual({ reason: "otherWords" });
  });

  it("has captions with the names of all models and the translations that they explain", () => {
    const compared = [explanation("a", "나는 간다."), explanation("b", "간다.")];
    expect(comparisonCaptions(compared)).toEqual(["I go. → 나는 간다. (a)", "I go. → 간다. (b)"]);
    expect(comparisonCaptions([compared[0], explanation("b", "나는 간다.")])).toEqual(["I go. → 나는 간다."]);
    expect(comparisonCaptions([explanation("a", "a cat", {}), explanation("b", "a dog", {})])).toEqual(["a cat (a)", "a dog (b)"]);
    expect(comparedNames(compared)).toBe("a, b");
    expect([comparisonCaptions([]), comparedNames([])]).toEqual([[], ""]);
  });
});
