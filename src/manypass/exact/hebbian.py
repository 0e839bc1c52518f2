"""Hebbian learning in epochs or by batches: F = ỹ whatever x, and so every sum is geometric.

A push of age s still counts w(s) = e^{−vλs}. Over the ages of all pushes, of those in one epoch (e)
and of those of one phase (ψ),

    S₁ = ∫w,   S₂ = ∫w²,   X = S₂ + S₁²/α                      with replacement,
    X = S₂ + (S₁² − Σ_e I_e²)/α,  I_e = ∫_e w   reshuffled,    X = ∫dψ (Σ_k w_k(ψ))²   fixed,
    R = avS₁,   Q = R² + bv²X + 2TS₂,   ⟨W⟩ = vS₁/α,   ⟨W²⟩ = v²X/α,   x = h + ỹW.

Correlated inputs multiply R by ΣPμ, R² in Q by ΣPμ² (in place of its square), and X by Σwμ².

By batches of Δ = βα powers stand for exponentials, and a batch just learned has the age 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass import orders
from manypass.checks import Array
from manypass.exact.epochs import located
from manypass.exact.lines import looks
from manypass.exact.modes import linear_modes
from manypass.exact.training_error import gaussian_errors, wrong
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.spectrum import gauss_legendre

NODES = 64  # of the ages within an epoch
FAINT = 1e-12  # boosts of this size are forgotten


class HebbianOrder:
    """R, Q, F2, Et, C and G of a Hebbian problem with an order, at times."""

    def __init__(self, problem: Problem, t: Array, *, settled: bool = False) -> None:
        self.problem, self.alpha = problem, problem.teacher.alpha
        self.step, self.rate = problem.batch_share * self.alpha, problem.rate * problem.decay
        if problem.sequence == "replacement":
            self.epoch, self.phase = np.zeros(t.size), self.step * orders.steps_by(problem, t)
        else:
            epoch, self.phase = located(problem, t)
            self.epoch = epoch.astype(float)
        if settled:  # at these phases, but for ever
            self.epoch = np.full(t.size, np.inf)
            if problem.sequence == "replacement":
                self.phase = self.epoch
        v, (a, b) = problem.rate, problem.teacher.moments()
        self.S1, self.S2 = (self._ages(r, self._time()) for r in (self.rate, self._square()))
        self.X = self._pairs()
        modes = linear_modes(problem)
        self.pull, self.own = float(modes.SB @ modes.g), float(modes.SB @ modes.g**2)
        self.loud = float(modes.S @ modes.g)
        R = a * v * self.S1 * self.pull
        Q = self.own * (a * v * self.S1) ** 2 + self.loud * b * v**2 * self.X
        Q = Q + 2 * problem.temperature * self.S2
        self.curves = {"R": R, "Q": Q, "F2": np.full(R.size, b)}

    def _time(self) -> Array:
        return self.phase + self.epoch * self.alpha

    def _square(self) -> float:
        return 2 * self.rate - self.rate**2 * self.step

    def _fall(self, age: Any) -> Any:
        """Return w(age)."""
        if self.step:
            return (1 - self.rate * self.step) ** self._steps(age)
        return np.exp(-self.rate * np.where(self.rate > 0, age, 0.0))

    def _steps(self, age: Any) -> Any:
        """Whole steps; for ever stays for ever."""
        forever = np.isinf(age)
        return np.where(forever, np.inf, np.rint(np.where(forever, 0.0, age) / self.step))

    def _ages(self, rate: float, age: Any) -> Any:
        """∫₀^age e^{−rate s} ds, or its sum."""
        if rate == 0:
            return np.asarray(age)
        if self.step:
            return (1 - (1 - rate * self.step) ** self._steps(age)) / rate
        return -np.expm1(-rate * np.asarray(age)) / rate

    def _turns(self, count: Array, power: int = 1) -> Array:
        """Σ_{l < count} w(α)^{power l}."""
        q = self._fall(self.alpha) ** power
        return np.asarray(count if q == 1 else (1 - q**count) / (1 - q))

    def _pairs(self) -> Array:
        """X."""
        phase, epoch, square = self.phase, self.epoch, self._square()
        if self.problem.sequence == "replacement":
            return np.asarray(self.S2 + self.S1**2 / self.alpha)
        if self.problem.sequence == "fixed":
            now, all_ = self._ages(square, phase), self._ages(square, self.alpha)
            X = self._turns(epoch + 1) ** 2 * now + self._turns(epoch) ** 2 * (all_ - now)
            return np.asarray(X)
        older = (self._fall(phase) * self._ages(self.rate, self.alpha)) ** 2 * self._turns(epoch, 2)
        other = self.S1**2 - self._ages(self.rate, phase) ** 2 - older
        return np.asarray(self.S2 + other / self.alpha)

    def training_error(self) -> Array:
        """½⟨(ỹ − x)²⟩ in regression, P(ỹx < 0) in classification."""
        problem, (a, b) = self.problem, self.problem.teacher.moments()
        v, R, Q = problem.rate, self.curves["R"], self.curves["Q"]
        mean, square = v * self.S1 / self.alpha, v**2 * self.X / self.alpha
        if problem.data.task == "regression":
            x2 = Q + 2 * a * R * mean + b * square
            return np.asarray(0.5 * (b - 2 * (a * R + b * mean) + x2))
        out = np.full(R.size, 0.5)
        for i in np.flatnonzero((Q > 0) & np.isfinite(Q)).tolist():  # else a guess
            if problem.sequence == "fixed":
                out[i] = self._repeated_error(i)
                continue

            def boosts(k: Array, i: int = i) -> Any:
                return self._boosts(i, k)

            out[i] = wrong(problem.teacher, float(R[i]), float(Q[i]), float(mean[i]), boosts)
        return out

    def _within(self, age: float, length: float) -> tuple[Array, Array]:
        """Return w at ages from `age` on over a length, and weights of sum the length over α."""
        if self.step:
            ages = age + self.step * np.arange(round(length / self.step))
            return self._fall(ages), np.full(ages.size, self.step / self.alpha)
        u, weight = gauss_legendre(NODES)
        return self._fall(age + length * (1 + u) / 2), weight / 2 * length / self.alpha

    def _repeated_error(self, i: int) -> float:
        """Average over ψ: an example of given phase has one W."""
        v, phase, epoch, R = self.problem.rate, self.phase[i], self.epoch[i], self.curves["R"][i]
        variance, total = self.curves["Q"][i] - R**2, np.zeros(())
        parts = ((0.0, phase, epoch + 1), (phase, self.alpha - phase, epoch))
        for age, length, count in parts:
            if length > 0:
                w, weight = self._within(age, length)
                B = v * self._turns(np.array(count)) * w
                A, spread = np.full(w.size, R), np.full(w.size, max(variance, 0.0))
                total = total + weight @ gaussian_errors(self.problem.teacher, A, B, spread)
        return float(total)

    def _boosts(self, i: int, k: Array) -> Any:
        """⟨e^{ikW}⟩: a product over epochs, or for batches with replacement over them."""
        v, phase, epoch = self.problem.rate, self.phase[i], self.epoch[i]
        top = v * float(np.max(k))
        if self.problem.sequence == "replacement":
            last = phase / self.step
            left = abs(1 - self.rate * self.step)  # by one step; the sign may turn each time
            if left < 1:
                faint = math.log(FAINT / top) / math.log(left) if left else 1.0
                last = min(last, max(faint, 1.0))
            exponent = np.zeros(k.shape, complex)
            for w in self._fall(self.step * np.arange(round(last))):
                exponent += np.expm1(1j * v * w * k)
            return np.exp(self.problem.batch_share * exponent)
        w, weight = self._within(0.0, phase)
        out = 1 + np.expm1(1j * v * np.multiply.outer(k, w)) @ weight
        for before in range(int(min(epoch, 1e7))):
            age = phase + before * self.alpha
            if top * abs(self._fall(age)) < FAINT:
                break
            w, weight = self._within(age, self.alpha)
            out = out * (np.exp(1j * v * np.multiply.outer(k, w)) @ weight)
        return out

    def two_time(self) -> tuple[Array, Array]:
        """C(t,s), and G(t,s) for t ≥ s, else 0."""
        problem, t = self.problem, self._time()
        v, b, alpha = problem.rate, problem.teacher.b, self.alpha
        lag = np.maximum(t[:, None] - t, 0.0)
        G = self._fall(lag)
        white = G * self.S2
        if problem.sequence == "replacement":
            X = white + np.outer(self.S1, self.S1) / alpha
        elif problem.sequence == "reshuffled":
            whole = self._ages(self.rate, alpha)
            older = (self._fall(self.phase) * whole) ** 2 * self._turns(self.epoch, 2)
            same = self.epoch[:, None] == self.epoch
            ended = np.maximum(t[:, None] - (self.epoch + 1) * alpha, 0.0)
            his = self._ages(self.rate, self.phase)
            seen = np.where(same, his[:, None], self._fall(ended) * whole)
            X = white + (np.outer(self.S1, self.S1) - G * older - seen * his) / alpha
        else:
            X = self._common_phases()
        R = problem.teacher.a * v * self.S1
        C = self.own * np.outer(R, R) + self.loud * b * v**2 * X + 2 * problem.temperature * white
        lower = np.tril(C)
        return lower + np.tril(lower, -1).T, np.tril(G)

    def _common_phases(self) -> Array:
        """∫dψ (Σ_k w_k(ψ))(t) (Σ_k w_k(ψ))(s): both after ψ, one, or none in their epochs."""
        p, alpha, square = self.phase, self.alpha, self._square()
        first, last = np.minimum(p[:, None], p), np.maximum(p[:, None], p)
        now, before = self._turns(self.epoch + 1), self._turns(self.epoch)
        total = np.zeros((p.size, p.size))
        for low, high in ((0.0 * first, first), (first, last), (last, 0.0 * last + alpha)):
            done = p >= high - 1e-9 * alpha
            factors = []
            for mine, axis in ((p[:, None] >= high - 1e-9 * alpha, 0), (done, 1)):
                shape = (-1, 1) if axis == 0 else (1, -1)
                x = np.where(mine, p.reshape(shape), p.reshape(shape) + alpha)
                sums = np.where(mine, now.reshape(shape), before.reshape(shape))
                factors.append(sums * self._fall(np.maximum(x - high, 0.0)))
            total += factors[0] * factors[1] * self._ages(square, high - low)
        return total

    @classmethod
    def steady(cls, problem: Problem, window: float) -> dict[str, Any]:
        """Means over an epoch and values at its end, for t → ∞."""
        if window:
            raise ValueError(
                f"`window` = {window:g}: no averages are known of Hebbian learning with sequence="
                f"{problem.sequence!r} and batch_share={problem.batch_share:g}; use method "
                f"Simulation(n=500, samples=100)"
            )
        alpha, task = problem.teacher.alpha, problem.data.task
        phase, weights = looks(alpha, problem.batch_share)
        found = cls(problem, phase, settled=True)
        values = dict(found.curves) | {"Et": found.training_error()}
        values["Eg"] = generalization_error(task, values["R"], values["Q"])
        out: dict[str, Any] = {name: float(x @ weights) for name, x in values.items()}
        if problem.sequence == "replacement":
            return out | {"Et_se": 0.0}
        out |= {f"{name}_end": float(x[-1]) for name, x in values.items()}
        return out | {"Et_se": 0.0, "Et_end_se": 0.0}
