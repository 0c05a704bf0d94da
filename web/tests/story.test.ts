import { describe, expect, it } from "vitest";

import { packWeights } from "../src/engine/packing";
import type { Change } from "../src/lib/changes";
import type { Explanation } from "../src/lib/format";
import { CHALLENGES, decisiveCrossHead, IS_DONE, FEWEST_HEADS_CHALLENGE, numSilenced, STORY, type Scene } from "../src/lib/story";

const text = (words: string[]) => ({ text: words.join(" "), ids: [], tokens: [], words, word_of_token: [] });
const explanation = (after: string[], before?: string[]) =>
  ({
    target: text(after),
    before: before && { target: text(before), log_prob: 0, log_prob_changed: 0 },
    attention: { cross: packWeights([1, 1], [1, 2, 1, 1]) },
    statistics: { cross: { effect: [[-0.1, -2]] } },
  }) as unknown as Explanation;
const scene = (overrides: Partial<Scene> = {}): Scene => ({ explanation: explanation(["a", "b"]), changes: [], pointedWords: { source: [], target: [] }, sentence: "I go.", example: "I go.", ...overrides });
const silence = (head: number | null, layer: number | null = 0): Change => ({ kind: "silence", site: "cross", layer, head });

describe("the story", () => {
  it("has seven steps, and a text for each challenge, in both languages", () => {
    for (const { steps, challenges } of Object.values(STORY)) {
      expect(steps.length).toBe(7);
      expect(IS_DONE.length).toBe(7);
      expect(challenges.length).toBe(CHALLENGES.length);
    }
    expect(STORY.ko.steps.map(({ act }) => !!act)).toEqual(STORY.en.steps.map(({ act }) => !!act));
  });

  it("marks a step with a task as done only after the reader has done the task", () => {
    const beforeAndAfter = (step: number, overrides: Partial<Scene>) => [IS_DONE[step](scene()), IS_DONE[step](scene(overrides))];
    expect(beforeAndAfter(2, { pointedWords: { source: [0], target: [] } })).toEqual([false, true]);
    expect(beforeAndAfter(3, { changes: [silence(1)] })).toEqual([false, true]);
    expect(beforeAndAfter(4, { changes: [silence(0), silence(1)], explanation: explanation(["x"], ["a"]) })).toEqual([false, true]);
    expect(beforeAndAfter(4, { changes: [silence(null, null)], explanation: explanation(["x"], ["a"]) })).toEqual([false, true]);
    expect(IS_DONE[4](scene({ changes: [silence(0)], explanation: explanation(["x"], ["a"]) }))).toBe(false);
    expect(beforeAndAfter(5, { changes: [{ kind: "pin", site: "cross", layer: null, head: null, queries: [0], keys: [0] }] })).toEqual([false, true]);
    expect(beforeAndAfter(6, { sentence: "You go." })).toEqual([false, true]);
    expect(IS_DONE[0](scene())).toBe(true);
    expect(IS_DONE[0](scene({ explanation: undefined }))).toBe(false);
  });

  it("names the cross-attention head whose silencing lowers the log-probability most", () => {
    expect(decisiveCrossHead(explanation([]))).toEqual([0, 1]);
    expect(decisiveCrossHead(undefined)).toBeNull();
  });

  it("marks a challenge as solved only if the changes solve it", () => {
    const [twice, fewest, shorter] = CHALLENGES;
    expect(twice(scene({ explanation: explanation(["책", "책"], ["책", "을"]) }))).toBe(true);
    expect(twice(scene({ explanation: explanation([".", "."], ["책", "."]) }))).toBe(false);
    expect(CHALLENGES[FEWEST_HEADS_CHALLENGE]).toBe(fewest);
    expect(fewest(scene({ explanation: explanation(["c"], ["a"]), changes: [silence(0)] }))).toBe(true);
    expect(fewest(scene({ explanation: explanation(["c"], ["a"]), changes: [silence(null, null)] }))).toBe(true);
    expect(fewest(scene({ explanation: explanation(["a"], ["a"]), changes: [silence(0)] }))).toBe(false);
    expect(fewest(scene({ explanation: explanation(["c"], ["a"]), changes: [{ kind: "pin", site: "cross", layer: null, head: null, queries: [0], keys: [0] }] }))).toBe(false);
    expect(fewest(scene({ explanation: explanation(["c"], ["a"]), changes: [] }))).toBe(false); // the changes were undone, but the old translation is still shown
    expect([[silence(0)], [silence(null, null)], []].map((changes) => numSilenced(scene({ changes })))).toEqual([1, 2, 0]);
    expect(shorter(scene({ explanation: explanation(["a"], ["a", "b"]) }))).toBe(true);
    expect(shorter(scene())).toBe(false);
  });
});
