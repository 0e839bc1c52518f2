// One simulation at a time: symbols sample by sample, until it ends or is stopped.

import * as api from "./api.js";
import { byId, tell } from "./tell.js";

export class Simulation {
  /** `found(result)` draws the average so far and returns a promise of that. */
  constructor(found) {
    this.found = found;
    this.control = null;
  }

  async start(view) {
    this.stop();
    const control = new AbortController();
    this.control = control;
    byId("stop").disabled = false;
    tell("simulation-word", "starting …");
    try {
      await api.run(view, "simulation", control.signal, (message) => {
        if (control.signal.aborted) return;
        tell("simulation-word", message.word);
        this.found(message.simulation).then(() => {
          document.body.dataset.simulated = message.word;
        });
      });
    } catch (error) {
      if (!control.signal.aborted) tell("simulation-word", error.message);
    }
    if (this.control === control) this.stop();
  }

  /** What was simulated so far stays. */
  stop() {
    this.control?.abort();
    this.control = null;
    byId("stop").disabled = true;
  }

  forget() {
    this.stop();
    tell("simulation-word", "");
  }
}
