// Long runs of the page, one after the other; all are dropped when the problem changes.

import * as api from "./api.js";

const DELAY = 200; // ms that a slider must rest before a run starts

export class Runs {
  /** `heard(job, message)`, `failed(job, text)` and `busy(word or null)` tell the page. */
  constructor({ heard, failed, busy }) {
    Object.assign(this, { heard, failed, busy });
    this.done = new Set();
    this.control = null;
  }

  /** Forget what is under way. The server notices that nobody listens, and drops it too. */
  drop() {
    clearTimeout(this.timer);
    this.control?.abort();
    this.control = null;
    this.busy(null);
  }

  /** Start these jobs, {kind, view, key}, once the sliders rest; finished ones are left out. */
  plan(jobs) {
    clearTimeout(this.timer);
    const open = jobs.filter((job) => !this.done.has(job.key));
    const keys = open.map((job) => job.key).join();
    if (this.control && keys === this.keys) return;
    this.drop();
    this.keys = keys;
    if (!open.length) return;
    this.busy("waiting");
    this.timer = setTimeout(() => this.perform(open), DELAY);
  }

  async perform(jobs) {
    const control = new AbortController();
    this.control = control;
    this.done.clear();
    for (const [i, job] of jobs.entries()) {
      this.keys = jobs.slice(i).map((left) => left.key).join();
      this.busy(job.word);
      try {
        await api.run(job.view, job.kind, control.signal, (message) => {
          if (control.signal.aborted) return;
          this.heard(job, message);
          if (!message.done) this.busy(message.word || job.word);
        });
      } catch (error) {
        if (control.signal.aborted) return;
        this.failed(job, error.message);
      }
      if (control.signal.aborted) return;
      this.done.add(job.key);
    }
    this.control = null;
    this.busy(null);
  }
}
