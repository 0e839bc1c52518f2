// What has to be said in words: no theory, no steady state, weights that grow.

/** Whether learning at a constant rate diverges, as far as the exact theory knows. */
export const isGrowing = (state, { critical_rate: limit, rate }) => (
  Boolean(limit) && !rate && state.rate >= limit
);

/** Whether weights become so large on the way that only a logarithm shows them. */
export const isLarge = ({ curves }) => Math.max(0, ...(curves?.Q ?? [])) > 1000;

export function warningOf(state, said, shown) {
  if (said.note) return `${said.note}. Here: press Simulate.`;
  const { critical_rate: limit, slow_mode: slow } = said;
  if (isGrowing(state, said)) {
    const v = Number(state.rate.toPrecision(4));
    const growth = slow < 0
      ? `|J|² and ⟨F²⟩ grow as e^(${(-slow).toPrecision(3)} t), doubling every `
        + `${(Math.LN2 / -slow).toPrecision(2)} time units`
      : "|J|² and ⟨F²⟩ grow without bound";
    return `v = ${v} is above the critical rate v_c = ${limit.toFixed(4)}: learning diverges. `
      + `There is no steady state; ${growth}. The curves show this growing transient, R, Q and ⟨F²⟩ on a logarithmic axis.`;
  }
  const most = said.rate ? Math.max(...said.rate.v) : 0;
  if (limit && most > limit) {
    return `v(t) is above the critical rate v_c = ${limit.toFixed(4)} for a time: the weights grow meanwhile.`;
  }
  if (said.warning) return `${said.warning}.`;
  const Q = shown.curves?.Q ?? shown.curves?.Q11;
  if (Q?.includes(null)) {
    const last = shown.curves.t[Q.indexOf(null)];
    return `The weights diverge before t = ${Number(last.toPrecision(3))}: the rate is too large.`;
  }
  return "";
}
