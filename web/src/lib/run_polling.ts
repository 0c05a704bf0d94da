/** Polls a run while it trains: its report, and explanations of one sentence by each of its checkpoints. */

import type { Explanation, RunReport } from "./format";

const POLL_MS = 3000;
/** A checkpoint that fails this often is left out: it may be damaged. (The report no longer names those that the run has deleted.) */
const MAX_ATTEMPTS = 3;

export interface PolledRun {
  fetchReport(): Promise<RunReport>;
  explain(step: number): Promise<Explanation>;
  isExplained(step: number): boolean;
  onReport(report: RunReport): void;
  onExplanation(step: number, explanation: Explanation): void;
  /** Receives each error; null after a report has arrived. */
  onProblem(error: unknown): void;
}

/** Poll until the run has finished and no checkpoint is left to explain. The returned function stops it: nothing is called afterwards. */
export function pollRun(run: PolledRun): () => void {
  const attempts = new Map<number, number>();
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const isLeft = (step: number) => !run.isExplained(step) && (attempts.get(step) ?? 0) < MAX_ATTEMPTS;

  /** Returns whether there is more to poll for. */
  async function poll(): Promise<boolean> {
    const report = await run.fetchReport();
    if (isStopped) return false;
    run.onReport(report);
    run.onProblem(null);
    for (const step of report.checkpoints.filter(isLeft)) {
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
    return !report.finished || report.checkpoints.some(isLeft);
  }

  async function pollUntilDone(): Promise<void> {
    let isMoreExpected = true;
    try {
      isMoreExpected = await poll();
    } catch (error) {
      if (!isStopped) run.onProblem(error);
    }
    if (isMoreExpected && !isStopped) timer = setTimeout(() => void pollUntilDone(), POLL_MS);
  }

  void pollUntilDone();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
