import { describe, expect, it } from "vitest";

import { checkChanges, checkRows, editFromChanges, firstStep, silenceHeads } from "../src/engine/edits";
import { parseChanges, type Change } from "../src/lib/changes";

/** Query 2 of head 1 in the cross-attention of layer 0. */
const weightRow = { site: "cross" as const, layer: 0, head: 1, query: 2 };

/** The weights of `weightRow` after a change. */
function applied(change: Change, weights: number[]): number[] {
  const row = Float32Array.from(weights);
  editFromChanges([change])!(row, weightRow);
  return [...row];
}

describe("changes", () => {
  /** All layers and heads of the cross-attention. */
  const scope = { site: "cross" as const, layer: null, head: null };

  it("a silenced head has only weights of 0", () => {
    expect(applied({ kind: "silence", ...scope }, [0.5, 0.5])).toEqual([0, 0]);
    expect(applied({ kind: "silence", ...scope, head: 0 }, [0.5, 0.5])).toEqual([0.5, 0.5]); // another head
  });

  it("paint sets a weight and rescales the other weights; the sum stays the same unless all other weights are 0 or the new weight is above the sum", () => {
    expect(applied({ kind: "paint", ...scope, query: 2, key: 0, weight: 0.5 }, [0.75, 0.125, 0.125])).toEqual([0.5, 0.25, 0.25]);
    expect(applied({ kind: "paint", ...scope, query: 2, key: 0, weight: 0.5 }, [1, 0])).toEqual([0.5, 0]);
    expect(applied({ kind: "paint", ...scope, query: 1, key: 0, weight: 0.5 }, [1, 0])).toEqual([1, 0]); // another query
    expect(applied({ kind: "paint", ...scope, query: 2, key: 0, weight: 0.5 }, [1, 1e-9])[1]).toBeCloseTo(0.5, 5); // even a tiny weight can be rescaled
    expect(applied({ kind: "paint", ...scope, query: 2, key: 0, weight: 0.75 }, [0.25, 0.25])).toEqual([0.75, 0]);
  });

  it("a pin gives all weight to its keys, in equal shares if their weights were 0", () => {
    expect(applied({ kind: "pin", ...scope, queries: [2], keys: [0, 1] }, [0.125, 0.375, 0.5])).toEqual([0.25, 0.75, 0]);
    expect(applied({ kind: "pin", ...scope, queries: [2], keys: [0, 1] }, [0, 0, 1])).toEqual([0.5, 0.5, 0]);
    expect(applied({ kind: "pin", ...scope, queries: [2], keys: [1] }, [0, 0, 0])).toEqual([0, 1, 0]);
  });

  it("a pin with a weight gives this share to its keys and rescales the other weights", () => {
    expect(applied({ kind: "pin", ...scope, queries: [2], keys: [0, 1], weight: 0.5 }, [0.125, 0.375, 0.5])).toEqual([0.125, 0.375, 0.5]);
    expect(applied({ kind: "pin", ...scope, queries: [2], keys: [0], weight: 0 }, [0.5, 0.25, 0.25])).toEqual([0, 0.5, 0.5]);
    expect(applied({ kind: "pin", ...scope, queries: [2], keys: [2], weight: 0.5 }, [0.75, 0.25, 0])).toEqual([0.375, 0.125, 0.5]);
    expect(applied({ kind: "pin", ...scope, queries: [2], keys: [0], weight: 0.5 }, [1, 0])).toEqual([0.5, 0]); // no other weight can be rescaled
    expect(applied({ kind: "pin", ...scope, queries: [2], keys: [0, 1, 0], weight: 0.5 }, [0.125, 0.375, 0.5])).toEqual([0.125, 0.375, 0.5]); // a key named twice
  });

  it("silenced heads stay silenced, whatever the order of the changes", () => {
    const pin: Change = { kind: "pin", ...scope, queries: [2], keys: [0] };
    for (const changes of [[{ kind: "silence", ...scope, layer: 0, head: 1 } as const, pin], [pin, { kind: "silence", ...scope, layer: 0, head: 1 } as const]]) {
      const row = Float32Array.of(0.25, 0.75);
      editFromChanges(changes)!(row, weightRow);
      expect([...row]).toEqual([0, 0]);
    }
  });

  it("the edit that `silenceHeads` returns sets the rows of these heads to 0", () => {
    const row = Float32Array.of(0.25, 0.75);
    silenceHeads("cross", [[0, 1]], null)(row, weightRow);
    expect([...row]).toEqual([0, 0]);
  });

  it("`firstStep` is the earliest query of a change, or 0 for silenced heads and the encoder", () => {
    expect(firstStep({ kind: "pin", ...scope, queries: [5, 3], keys: [0] })).toBe(3);
    expect(firstStep({ kind: "paint", ...scope, site: "encoder", query: 4, key: 0, weight: 1 })).toBe(0);
    expect(firstStep({ kind: "silence", ...scope })).toBe(0);
  });

  it("`checkChanges` refuses a site, a head, a key and a weight that are impossible", () => {
    const maps = { decoder: { shape: [1, 2, 3, 3] as [number, number, number, number], values: new Float32Array(18) } };
    const decoder = { site: "decoder" as const, layer: null, head: null };
    expect(() => checkChanges([{ kind: "silence", ...scope }], maps)).toThrow('no attention "cross"');
    expect(() => checkChanges([{ kind: "silence", ...decoder, head: 2 }], maps)).toThrow("no head 2");
    expect(() => checkChanges([{ kind: "paint", ...decoder, query: 0, key: 1, weight: 1 }], maps)).toThrow("causal");
    expect(() => checkChanges([{ kind: "paint", ...decoder, query: 0, key: 0, weight: 2 }], maps)).toThrow("between 0 and 1");
    expect(() => checkChanges([{ kind: "paint", ...decoder, query: 1, key: 1, weight: 1 }], maps)).not.toThrow();
  });

  it("`checkRows` refuses a step after the end of the longer translation, unless the change has `words`", () => {
    // The old translation has 8 steps, and the source has 5 keys. The change is made at query 9, which only a longer translation has.
    const maps = { cross: { shape: [1, 2, 8, 5] as [number, number, number, number], values: new Float32Array(80) } };
    const later: Change = { kind: "pin", ...scope, queries: [9], keys: [1] };
    expect(() => checkChanges([later], maps)).not.toThrow();
    expect(() => checkChanges([{ ...later, keys: [5] }], maps)).toThrow("no key 5");
    expect(() => checkRows([later], 10)).not.toThrow();
    expect(() => checkRows([later], 9)).toThrow("no query 9: there are 9");
    expect(() => checkRows([{ ...later, words: ["책을", "book"] }], 9)).not.toThrow();
  });

  it("`parseChanges` reads changes from an address, or none if one of them is invalid", () => {
    expect(parseChanges('[{"kind":"silence","site":"cross"}]')).toEqual([{ kind: "silence", site: "cross", layer: null, head: null }]);
    const invalid = [
      ...["", "{}", '[{"kind":"silence","site":"x"}]', '[{"kind":"paint","site":"cross"}]'],
      '[{"kind":"pin","site":"cross","queries":[-1],"keys":[0]}]',
    ];
    for (const text of invalid) expect(parseChanges(text)).toEqual([]);
  });
});
