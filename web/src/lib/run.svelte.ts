/** The state of the panel Run: the report of the run, the scored sentences and the head profiles.
 *
 * It is not part of the panel's component, so that long work continues while another panel is shown. */

import { fetchHeadProfile, fetchSentences, type LongWork } from "./api";
import type { HeadProfile, RunReport, StoredRun } from "./format";
import { page } from "./page.svelte";

/** Work of the server that takes seconds or minutes. The server reports its progress, and the reader can cancel it. */
export class Work<Request = never, Result = unknown> {
  result = $state.raw<Result | null>(null);
  /** The share of the work that is done, from 0 to 1; null if the work is not running. */
  progress = $state<number | null>(null);
  problem = $state("");
  #controller = new AbortController();
  #compute: (request: Request, work: LongWork) => Promise<Result>;

  constructor(compute: (request: Request, work: LongWork) => Promise<Result>) {
    this.#compute = compute;
  }

  /** Start the work. Returns the result, or null if the work was cancelled or failed. */
  async start(request: Request): Promise<Result | null> {
    const { signal } = (this.#controller = new AbortController());
    [this.progress, this.problem] = [0, ""];
    try {
      const onProgress = (done: number, total: number) => {
        if (!signal.aborted) this.progress = done / total;
      };
      this.result = await this.#compute(request, { signal, onProgress });
      return this.result;
    } catch (error) {
      if (!signal.aborted) this.problem = page.errorMessage(error);
      return null;
    } finally {
      if (!signal.aborted) this.progress = null;
    }
  }

  cancel(): void {
    this.#controller.abort();
    this.progress = null;
  }
}

type HeadProfileRequest = Parameters<typeof fetchHeadProfile>[0];
const MAX_HEAD_PROFILES = 24;

class Run {
  report = $state.raw<RunReport | null>(null);
  sentences = new Work(fetchSentences);
  headProfile = new Work(fetchHeadProfile);
  /** The profiles that were measured last, the newest first. */
  headProfiles = $state.raw<HeadProfile[]>([]);

  constructor(stored: StoredRun | null) {
    if (!stored) return;
    [this.report, this.headProfiles, this.sentences.result] = [stored.report, stored.headProfiles, stored.sentences];
  }

  /** Measure one head; returns whether it was measured. */
  async measureHead(request: HeadProfileRequest): Promise<boolean> {
    const profile = await this.headProfile.start(request);
    if (profile) this.headProfiles = [profile, ...this.headProfiles].slice(0, MAX_HEAD_PROFILES);
    return profile !== null;
  }
}

export const run = new Run(page.storedRun);

/** The data of the run for a saved page; null if there is no run. */
export function runToStore(): StoredRun | null {
  if (!run.report) return null;
  return {
    report: run.report,
    checkpoints: page.storedRun?.checkpoints ?? page.checkpointExplanations.entries,
    sentences: run.sentences.result,
    headProfiles: run.headProfiles,
  };
}
