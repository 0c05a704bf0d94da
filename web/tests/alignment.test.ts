import { describe, expect, it } from "vitest";

import { alignments, growDiagonalFinal } from "../src/engine/alignment";

describe("alignments", () => {
  it("are combined from the links of both directions by grow-diag-final", () => {
    expect(growDiagonalFinal([[0, 0], [1, 1], [1, 2]], [[0, 0], [1, 1], [2, 2]])).toEqual([[0, 0], [1, 1], [1, 2], [2, 2]]);
  });

  it("are read from the heads of the read-out, with </s> as part of the last word", () => {
    // The rows are the two words of the target and </s>; the columns are the two words of the source and </s>. The second word of the
    // target gives 0.25 + 0.5 to the second word of the source, because </s> counts as part of it.
    const values = Float32Array.of(0.75, 0.25, 0, 0.25, 0.25, 0.5, 0, 0, 1);
    const [readOut, ...others] = alignments({ shape: [1, 1, 3, 3], values }, null, [0, 1], [0, 1]);
    expect(readOut).toEqual({ name: "read-out", heads: [[0, 0]], shift: 0, method: "argmax", links: "0-0 1-1" });
    expect(others.map(({ name }) => name)).toContain("grow-diagonal-final");
  });
});
