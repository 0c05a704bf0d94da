/** What the page knows of a run: its report, the list of sentences and profiles of heads.
 *
 * This state outlives the panel Run: long work continues while another panel is shown. */

import { fetchHeadProfile, fetchSentences, type LongWork } from "./api";
import type { HeadProfile, RunReport, StoredRun } from "./format";
import { page } from "./page.svelte";

/** Work of the server that takes seconds or minutes. It reports its progress and can be cancelled. */
export class Work<Request = never, Result = unknown> {
  result = $state.raw<Result | null>(null);
  /** The share that is done, from 0 to 1; null if nothing runs. */
  progress = $state<number | null>(null);
  problem = $state("");
  #controller = new AbortController();
  #compute: (request: Request, work: LongWork) => Promise<Result>;

  constructor(compute: (request: Request, work: LongWork) => Promise<Result>) {
    this.#compute = compute;
  }

  /** Start the work; returns its result, or null if it was cancelled or failed. */
  async start(request: Request): Promise<Result | null> {
    const { signal } = (this.#controller = new AbortController());
    [this.progress, this.problem] = [0, ""];
    try {
      this.result = await this.#compute(request, { signal, onProgress: (done, total) => signal.aborted || (this.progress = done / total) });
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
  /** The latest profiles that were measured, the newest first. */
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

/** What a saved page keeps of the run; null without one. */
export function runToStore(): StoredRun | null {
  if (!run.report) return null;
  return { report: run.report, checkpoints: page.storedRun?.checkpoints ?? page.checkpointExplanations.entries, sentences: run.sentences.result, headProfiles: run.headProfiles };
}
