"""One pass, α = ∞: every example is fresh, and R and Q close for every rule.

F = p y + m x + (what is orthogonal to both) gives, for every eigenvalue μ of the inputs,

    dR_k/dt = −vλR_k + vμ_k(p + mR_k),    dn_k/dt = −2vλn_k + 2vμ_k m n_k + v²μ_k⟨F²⟩ + 2T
    R = ΣP R_k,    Q = ΣP R_k² + Σwμ n_k

with averages over Gaussian x and y: integrals over one variable, in panels between which forces
bend or jump. They are smooth in √t where learning starts from J = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy  # its rooms open on first use
from scipy.special import ndtr

from manypass import schedules
from manypass.cavity.modes import few
from manypass.checks import Array
from manypass.exact.steady import window_factor
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.smooth import objection
from manypass.spectrum import gauss_legendre

NODES = 1e-9  # error of sums over eigenvalues
REACH = 64.0  # activations up to which bends and jumps are looked for
BENDS = np.array([0.0, 1.0, 2.5, 4.0, 6.0, 9.0])  # panels of a normal variable
U, GAUSS = gauss_legendre(16)
TAIL = np.linalg.inv(np.polynomial.legendre.legvander(U, 15))[-2:]
ROUGH, NARROWEST = 1e-9, 1e-11
LARGEST = 1e12  # a |J|² beyond this is called infinite
STRETCHES, LOOSE = 9, 1e-6  # on the way to a steady state: each four times as long; error allowed
SETTLED, NEAR = 1e-9, 0.1  # how well it reproduces itself, and how far the way may still be


def residual(problem: Problem) -> bool:
    """Whether the force depends on ỹ − x alone."""
    rng = np.random.default_rng(0)
    x, target, shift = rng.normal(size=(3, 50))
    force = vectorised(problem)
    return bool(np.allclose(force(x, target), force(x + shift, target + shift), atol=1e-9))


def refusal(problem: Problem) -> str | None:
    """Why one pass of this problem is not served, or None."""
    if problem.mode == "batch":
        return "`mode` = 'batch' needs a training set: `alpha` = inf has fresh examples only"
    for name, wrong in (
        ("sequence", problem.sequence != "replacement"),
        ("batch_share", problem.batch_share > 0),
    ):
        if wrong:
            return (
                f"Exact() with `alpha` = inf takes examples one by one, not `{name}` = "
                f"{getattr(problem, name)!r}: use method Simulation(n=500, samples=100)"
            )
    if why := objection(problem.rule, problem.teacher.task, flow=False):
        return (
            f"Exact() with `alpha` = inf does not serve `rule` {problem.rule!r}: {why}; use "
            f"method Simulation(n=500, samples=100), as long as no activation comes there"
        )
    if problem.teacher.task == "regression" and not residual(problem):
        return (
            f"Exact() with `alpha` = inf serves regression by forces that depend on the residual "
            f"target - x alone, not `rule` {problem.rule!r}: use method "
            f"Simulation(n=500, samples=100)"
        )
    return None


class OnePass:
    """The equations in components: of the teacher's direction, and of what is orthogonal to it."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.average = problem, averages(problem)
        self.mu, self.w_mu, self.mu_y, self.P, _ = few(problem.teacher.inputs, NODES)

    def start(self) -> Array:
        """J(0), even in all directions as a test sees them: wμn is even in w."""
        start, mu = self.problem.start, self.mu
        R = np.full(self.P.size, start.R if start else 0.0)
        n = start.c / mu / float(self.w_mu @ (1 / mu)) if start and start.c else 0 * mu
        return np.concatenate([R, n])

    def order(self, state: Array) -> tuple[float, float]:
        """R and Q."""
        R, n = state[: self.P.size], state[self.P.size :]
        return float(self.P @ R), float(self.P @ R**2 + self.w_mu @ n)

    def change(self, time: float, state: Array) -> Array:
        """d/dt."""
        R, n = state[: self.P.size], state[self.P.size :]
        v, decay = float(self.problem.v(time)), float(self.problem.decays(time))
        p, m, F2 = self.average(*self.order(state))
        dR = v * (self.mu_y * (p + m * R) - decay * R)
        dn = 2 * v * (self.mu * m - decay) * n + v**2 * self.mu * F2 + 2 * self.problem.temperature
        return np.concatenate([dR, dn])

    def still(self, R: float, Q: float) -> tuple[Array, Array]:
        """R_k and n_k that do not change at these averages."""
        p, m, F2 = self.average(R, Q)
        v, decay = self.problem.rate, self.problem.decay
        pushed = v * self.mu * F2 / 2 + self.problem.temperature / v
        return self.mu_y * p / (decay - m * self.mu_y), pushed / (decay - m * self.mu)

    def follow(
        self, low: float, high: float, state: Array, way: Any = "DOP853", rtol: float = 1e-10
    ) -> Any:
        """Integrate from one √t to another, until |J|² has diverged."""

        def slope(root: float, state: Array) -> Array:
            return 2 * root * self.change(root * root, state)

        def lost(_: float, state: Array) -> float:
            return LARGEST - self.order(state)[1]

        lost.terminal = True  # type: ignore[attr-defined]
        rules: Any = {"events": lost, "rtol": rtol, "atol": 1e-3 * rtol, "dense_output": True}
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges ends as inf
            return scipy.integrate.solve_ivp(slope, (low, high), state, way, **rules)


def curves(problem: Problem, t: Array) -> dict[str, Array]:
    """R, Q, F2, Eg, Et at times t; inf once |J|² has diverged."""
    modes = OnePass(problem)
    stops = [0.0, *(b for b in schedules.breaks(problem.rate, problem.decay) if 0 < b < t[-1])]
    stops = [math.sqrt(stop) for stop in [*stops, max(float(t[-1]), 1e-12)]]
    out, state, roots = np.full((3, t.size), np.inf), modes.start(), np.sqrt(t)
    for low, high in pairwise(stops):
        inside = np.nextafter(np.array([low, high]), [high, low])  # of a schedule that jumps
        found = modes.follow(inside[0], inside[1], state)
        here = np.flatnonzero((roots >= low) & (roots <= min(high, found.t[-1] * (1 + 1e-12))))
        for i in here:
            late = min(max(roots[i], inside[0]), found.t[-1])
            R, Q = modes.order(modes.start() if t[i] == 0 else found.sol(late))
            out[:, i] = R, Q, modes.average(R, Q)[2]
        if found.status == 1:
            break
        state = found.y[:, -1]
    return observed(problem, *out)


def observed(problem: Problem, R: Any, Q: Any, F2: Any, kept: Any = None) -> dict[str, Any]:
    """Errors as well: Et of the present weights, Eg of those whose Q is `kept`, if given."""
    task, b, whole = problem.teacher.task, problem.teacher.b, Q if kept is None else kept
    if task == "regression":
        Et = np.where(np.isfinite(Q), 0.5 * (b - 2 * R + np.where(np.isfinite(Q), Q, 0)), np.inf)
    else:  # against noisy labels
        Et = generalization_error(task, R / math.hypot(1, problem.teacher.noise), Q)
    Eg = generalization_error(task, R, whole)
    return {"R": R, "Q": whole, "F2": F2, "Eg": Eg, "Et": Et, "Et_se": np.zeros(np.shape(R))}


def steady(problem: Problem, window: float) -> dict[str, Any]:
    """Values for t → ∞; R, Q, Eg of weights averaged over a window τ.

    What is orthogonal to the teacher, in a direction of eigenvalue μ, relaxes at the rate
    v(λ − mμ), as fresh examples know nothing of it: C(τ) has Σwμ n e^{−v(λ−mμ)τ}.
    """
    modes = OnePass(problem)
    R, Q = settled(problem, modes)
    m, F2 = modes.average(R, Q)[1:]
    rates = problem.rate * (problem.decay - m * modes.mu)
    fluctuations = modes.w_mu * modes.still(R, Q)[1]
    kept = Q - float(fluctuations @ (1 - window_factor(rates * window)))
    return {name: float(value) for name, value in observed(problem, R, Q, F2, kept).items()}


def settled(problem: Problem, modes: OnePass) -> tuple[float, float]:
    """R and Q that reproduce themselves, near where learning has come to."""

    def missed(at: Array) -> Array:
        """Return the change of R/√Q and log Q, which both may be solved for at any size."""
        Q = math.exp(min(float(at[1]), 50.0))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            R_k, n = modes.still(float(at[0]) * math.sqrt(Q), Q)
            R, Q = modes.order(np.concatenate([R_k, n]))
            return np.nan_to_num(place(R, Q) - at, nan=1e3)

    def place(R: float, Q: float) -> Array:
        return np.array([R / math.sqrt(Q), math.log(Q)]) if Q > 0 else np.full(2, np.nan)

    v, state = problem.rate, modes.start()
    for low, high in pairwise([0.0, *np.cumsum(10 / v * 4.0 ** np.arange(STRETCHES))]):
        found = modes.follow(math.sqrt(low), math.sqrt(high), state, "Radau", LOOSE)
        if found.status == 1:
            raise ValueError(f"no steady state: `rate` = {v:g} is too large, |J|² diverges")
        state = found.y[:, -1]
        near = place(*modes.order(state))
        root = scipy.optimize.root(missed, near, tol=1e-13)
        if np.abs(root.fun).max() < SETTLED and np.abs(root.x - near).max() < NEAR:
            Q = math.exp(root.x[1])
            return float(root.x[0] * math.sqrt(Q)), Q
        if found.status != 0:  # steps as short as rounding
            break
    raise ValueError(
        f"no steady state is reached by t = {found.t[-1] ** 2:.3g}, where |J|² = "
        f"{modes.order(state)[1]:.4g}: with `decay` = {problem.decay:g} weights grow for ever, or "
        f"very long; `solve` follows them"
    )


def averages(problem: Problem) -> Callable[[float, float], tuple[float, float, float]]:
    """Return the function of R and Q that gives p, m and ⟨F²⟩."""
    force, noisy = vectorised(problem), 1 + problem.teacher.noise**2
    if problem.teacher.task == "regression":
        bends = edges(lambda d: force(0 * d, d))

        def of_residual(R: float, Q: float) -> tuple[float, float, float]:
            size = math.sqrt(max(noisy - 2 * R + Q, 1e-300))
            g, weight = panels(bends / size)
            F = force(0 * g, size * g)
            slope = float(weight @ (F * g)) / size
            return slope, -slope, float(weight @ F**2)

        return of_residual

    def given(label: float) -> Array:
        return edges(lambda x: force(x, np.full_like(x, label)))

    both = [(label, given(label)) for label in (-1.0, 1.0)]

    def of_label(R: float, Q: float) -> tuple[float, float, float]:
        size = math.sqrt(Q) if Q > 0 else 1e-15
        rho = R / size if Q > 0 else 0.0
        apart = math.sqrt(max(noisy - rho**2, 1e-16))
        p = along = F2 = 0.0
        for s, bends in both:
            g, weight = panels(np.concatenate([bends / size, apart / max(abs(rho), 0.1) * SHARP]))
            F, at = force(size * g, np.full_like(g, s)), s * rho * g / apart
            chance = weight * ndtr(at)
            p += s * float((weight * np.exp(-at * at / 2)) @ F) / (math.sqrt(2 * math.pi) * apart)
            along += float(chance @ (F * g))
            F2 += float(chance @ F**2)
        return p, (along - p * rho) / size if Q > 0 else 0.0, F2

    return of_label


SHARP = np.array([-8.0, -4.0, -2.0, -1.0, 1.0, 2.0, 4.0, 8.0])


def panels(bends: Array) -> tuple[Array, Array]:
    """Nodes and weights of a normal variable, between the points where a force bends."""
    ends = np.concatenate([-BENDS, BENDS, bends[np.abs(bends) < BENDS[-1]]])
    ends = np.unique(ends)
    half = np.diff(ends)[:, None] / 2
    g = (ends[:-1, None] + half * (1 + U)).ravel()
    weight = (half * GAUSS).ravel() * np.exp(-g * g / 2) / math.sqrt(2 * math.pi)
    return g, weight / weight.sum()


def edges(force: Callable[[Array], Array]) -> Array:
    """Return ends of panels in each of which a force is a polynomial: where it bends or jumps."""
    jumps: list[float] = []
    for _ in range(2):  # first to find them, then to divide between them
        todo = np.array([-math.pi / 3 * REACH, *jumps, math.e / 3 * REACH])
        todo, done = np.stack([todo[:-1], todo[1:]], axis=1), []
        found = []
        while len(todo):
            low, width = todo[:, :1], np.diff(todo, axis=1)
            inner = low + width * (1e-9 * min(len(jumps), 1) + (1 + U) / 2)
            F = force(inner.ravel()).reshape(inner.shape)
            rough = np.abs(F @ TAIL.T).max(axis=1) > ROUGH * (1 + np.abs(F).max(axis=1))
            narrow = width[:, 0] < NARROWEST * REACH
            found += list(todo[rough & narrow].mean(axis=1))
            done += list(todo[~rough | narrow])
            rough &= ~narrow
            middle = todo[rough].mean(axis=1)
            parts = [(todo[rough, 0], middle), (middle, todo[rough, 1])]
            todo = np.concatenate([np.stack(part, axis=1) for part in parts])
        if not found or jumps:
            break
        found.sort()
        jumps = [x for i, x in enumerate(found) if i == 0 or x - found[i - 1] > 1e-8]
    ends = np.unique(np.concatenate(done))
    return np.asarray(ends[np.append(True, np.diff(ends) > 1e-8)])


def vectorised(problem: Problem) -> Callable[[Array, Array], Array]:
    """Return the force on arrays, also of a rule that knows numbers only."""
    force: Any = problem.rule.force
    x, target = np.array([-0.7, 0.2, 1.3]), np.array([1.0, -1.0, 1.0])
    right = [float(force(float(a), float(b))) for a, b in zip(x, target, strict=True)]
    try:
        same = np.array_equal(np.broadcast_to(force(x, target), x.shape), right)
    except Exception:
        same = False
    if same:
        return lambda x, target: np.broadcast_to(force(x, target), x.shape)
    return np.vectorize(force, otypes=[float])
