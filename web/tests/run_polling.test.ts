import { afterEach, beforeEach, expect, it, vi } from "vitest";

import type { Explanation, RunReport } from "../src/lib/format";
import { pollRun } from "../src/lib/run_polling";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const WHOLE_MINUTE = 60_000;
const report = (checkpoints: number[], finished = true) => ({ checkpoints, finished }) as RunReport;

/** Poll a run, and record what the page would show. An error is recorded as its message, and the end of a problem as "". The request for
 * a checkpoint fails if `shouldFail` returns true. */
function watch(fetchReport: () => Promise<RunReport>, shouldFail: (step: number) => boolean = () => false) {
  const shown = { explained: [] as number[], attempts: [] as number[], problems: [] as string[] };
  const stop = pollRun({
    fetchReport,
    explain: async (step) => {
      shown.attempts.push(step);
      if (shouldFail(step)) throw new Error(`checkpoint ${step}`);
      return {} as Explanation;
    },
    isExplained: (step) => shown.explained.includes(step),
    onReport: () => undefined,
    onExplanation: (step) => void shown.explained.push(step),
    onProblem: (error) => void shown.problems.push(error instanceof Error ? error.message : ""),
  });
  return { shown, stop };
}

it("if a checkpoint fails, the other checkpoints are explained, and the failing checkpoint is tried three times", async () => {
  const { shown } = watch(async () => report([1, 2, 3]), (step) => step === 2);
  await vi.advanceTimersByTimeAsync(WHOLE_MINUTE);
  expect(shown.explained).toEqual([1, 3]);
  expect(shown.attempts).toEqual([1, 2, 3, 2, 2]);
  expect(shown.problems.at(-1)).toBe("checkpoint 2");
});

it("a checkpoint that fails once is explained at the next poll, and the problem is cleared", async () => {
  let numRequests = 0;
  const { shown } = watch(async () => report([1]), () => ++numRequests === 1);
  await vi.advanceTimersByTimeAsync(WHOLE_MINUTE);
  expect([shown.explained, shown.problems]).toEqual([[1], ["", "checkpoint 1", ""]]);
});

it("a report that fails is requested again, and polling stops when the run has finished", async () => {
  const fetchReport = vi.fn().mockRejectedValueOnce(new Error("gone")).mockResolvedValueOnce(report([], false)).mockResolvedValue(report([]));
  const { shown } = watch(fetchReport);
  await vi.advanceTimersByTimeAsync(WHOLE_MINUTE);
  expect(shown.problems).toEqual(["gone", "", ""]);
  expect(fetchReport).toHaveBeenCalledTimes(3);
});

it("after polling has been stopped, neither explanations nor errors are shown", async () => {
  const { shown, stop } = watch(async () => report([1]), () => {
    stop();
    return true;
  });
  await vi.advanceTimersByTimeAsync(WHOLE_MINUTE);
  expect([shown.attempts, shown.problems]).toEqual([[1], [""]]);
});
