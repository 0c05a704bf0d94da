/** Polls a run while it trains: requests its report, and explanations of one sentence by each checkpoint. */

import type { Explanation, RunReport } from "./format";

const POLL_MS = 3000;
/** How many times the explanation by one checkpoint is requested if there are errors. Then the checkpoint is skipped, because its file may be
 * damaged. Deleted checkpoints need no such limit, because the report does not list them. */
const MAX_ATTEMPTS = 3;

export interface PolledRun {
  fetchReport(): Promise<RunReport>;
  explain(step: number): Promise<Explanation>;
  isExplained(step: number): boolean;
  onReport(report: RunReport): void;
  onExplanation(step: number, explanation: Explanation): void;
  /** Called with each error, and with null after a report has arrived. */
  onProblem(error: unknown): void;
}

/** Poll until the run has finished and every checkpoint is explained or was skipped. Returns a function that stops the polling. After it
 * was called, no method of `run` is called. */
export function pollRun(run: PolledRun): () => void {
  const attempts = new Map<number, number>();
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const needsExplanation = (step: number) => !run.isExplained(step) && (attempts.get(step) ?? 0) < MAX_ATTEMPTS;

  /** Poll once. Returns whether another poll is needed. */
  async function poll(): Promise<boolean> {
    const report = await run.fetchReport();
    if (isStopped) return false;
    run.onReport(report);
    run.onProblem(null);
    for (const step of report.checkpoints.filter(needsExplanation)) {
      attempts.set(step, (attempts.get(step) ?? 0) + 1);
      try {
        const explanation = await run.explain(step);
        if (isStopped) return false;
        run.onExplanation(step, explanation);
      } catch (error) {
        if (isStopped) return false;
        run.onProblem(error);
      }
    }
    return !report.finished || report.checkpoints.some(needsExplanation);
  }

  async function pollUntilDone(): Promise<void> {
    let needsAnotherPoll = true;
    try {
      needsAnotherPoll = await poll();
    } catch (error) {
      if (!isStopped) run.onProblem(error);
    }
    if (needsAnotherPoll && !isStopped) timer = setTimeout(() => void pollUntilDone(), POLL_MS);
  }

  void pollUntilDone();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
