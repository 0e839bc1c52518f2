"""E_t of linear rules where no sampling is needed: batch learning, Hebbian learning, regression."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy  # its rooms open on first use: most answers need none of them

from manypass import schedules
from manypass.checks import Array
from manypass.exact.course import Course
from manypass.exact.modes import Modes, State, learned
from manypass.problem import Problem, Teacher
from manypass.rules import Hebbian
from manypass.spectrum import gauss_legendre

MANY, PANEL = 400, 64  # nodes


def closed_training_error(
    problem: Problem, modes: Modes, t: Array, state: State, found: Any
) -> Array | None:
    """E_t at times t (inf for the steady state), or None where it has to be sampled.

    Regression: ½⟨(ỹ − x)²⟩. Classification: P(ỹx < 0) over the training set.
    """
    R, Q, F2 = (np.atleast_1d(found[name]) for name in ("R", "Q", "F2"))
    hebbian, regression = isinstance(problem.rule, Hebbian), problem.data.task == "regression"
    if hebbian:
        return (
            hebbian_regression(problem, t, R, Q) if regression else hebbian_errors(problem, t, R, Q)
        )
    if regression:
        return F2 / 2
    if math.isinf(problem.teacher.alpha):  # whoever is learned is new
        wrong = gaussian_errors(problem.teacher, R, 0 * R, np.maximum(Q - R**2, 0.0))
        return np.where(Q > 0, wrong, 0.5)
    if problem.mode == "batch":
        y_part, target_part, variance = gaussian_activation(problem.teacher, modes, state, F2)
        wrong = gaussian_errors(problem.teacher, y_part, target_part, variance)
        return np.where(Q > 0, wrong, 0.5)  # J = 0: a guess
    return None


def gaussian_activation(
    data: Teacher, modes: Modes, state: State, F2: Array
) -> tuple[Array, Array, Array]:
    """Return A, B, σ² of x = Ay + Bỹ + σz in batch Adaline learning.

    B = (1/α) ∫ρ h e is what the example taught itself, A follows from ⟨yF⟩ = R'/v + λR and σ²
    from F2.
    """
    a, b, loud = data.a, data.b, modes.rho * modes.h
    B = loud @ state.e / data.alpha
    yF = modes.theta @ (a * state.u - modes.R0 * state.E)
    A = a - yF - a * B
    variance = F2 - (b - 2 * (A * a + B * b) + A**2 + 2 * a * A * B + b * B**2)
    return A, B, np.maximum(variance, 0.0)


def gaussian_errors(data: Teacher, A: Array, B: Array, variance: Array) -> Array:
    """P(ỹx < 0) for x = Ay + Bỹ + σz: an integral over u = yỹ, of density 2φ(u)Φ(u/ε)."""
    nodes, weights = gauss_legendre(MANY)
    half, reach = (1 + nodes) / 2, 9.0
    u = reach * np.concatenate([-half, half])  # nodes crowd at 0, where a small ε shows
    weight = reach / 2 * np.tile(weights, 2) * np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    weight *= scipy.special.erfc(-u / (math.sqrt(2) * max(data.noise, 1e-300)))
    x = np.multiply.outer(A, u) + B[:, None]
    spread = np.sqrt(2 * variance)[:, None]
    tail = 0.5 * scipy.special.erfc(x / np.where(spread > 0, spread, 1))
    wrong = np.where(spread > 0, tail, 0.5 - 0.5 * np.sign(x))
    return np.asarray(wrong @ weight)


def hebbian_regression(problem: Problem, t: Array, R: Array, Q: Array) -> Array:
    """½⟨(ỹ − x)²⟩ with x = h + ỹW, W the shot noise of the learning instants."""
    a, b = problem.teacher.a, problem.teacher.b
    mean, square = shot_moments(problem, t)
    return 0.5 * (b - 2 * (a * R + b * mean) + Q + 2 * a * R * mean + b * square)


def pulses(course: Course, t: float) -> tuple[Array, Array]:
    """Nodes of ∫₀ᵗ ds as weights, and v(s) e^{−∫vλ} from s to t there: what a kick at s is at t."""
    if not t:
        return np.zeros(1), np.zeros(1)
    problem = course.problem
    edges = [0.0, *(b for b in schedules.breaks(problem.rate, problem.decay) if b < t), t]
    u, gauss = gauss_legendre(MANY)
    s = np.concatenate([low + (high - low) * (1 + u) / 2 for low, high in pairwise(edges)])
    weight = np.concatenate([(high - low) / 2 * gauss for low, high in pairwise(edges)])
    _, L = course.at(np.append(s, t)).s
    return weight, problem.v(s) * np.exp(L[:-1] - L[-1])


def shot_moments(problem: Problem, t: Array, course: Course | None = None) -> tuple[Array, Array]:
    """⟨W⟩ and ⟨W²⟩ of W = v Σ_r e^{−vλ(t−t_r)}; in batch mode W is its mean.

    A `course` that reaches as far as t saves making one where the rate or the decay moves.
    """
    if problem.scheduled:
        course = course or Course(problem, float(t[-1]))
        every = [pulses(course, time) for time in t.tolist()]
        alpha, online = problem.data.alpha, problem.mode == "online"
        mean = np.array([w @ kick for w, kick in every]) / alpha
        return mean, mean**2 + online * np.array([w @ kick**2 for w, kick in every]) / alpha
    v, rate = problem.rate, np.array([problem.rate * problem.decay])
    mean = v / problem.data.alpha * _learned(rate, t)[0]
    square = v**2 / problem.data.alpha * _learned(2 * rate, t)[0] * (problem.mode == "online")
    return mean, mean**2 + square


def shot_exponent(problem: Problem, t: float, k: Array, course: Course | None = None) -> Any:
    """log⟨e^{ikW}⟩ = (1/α) ∫₀ᵗ [exp(ikv e^{−vλs}) − 1] ds, by sine and cosine integrals."""
    if problem.mode == "batch":
        return np.asarray(1j * k * shot_moments(problem, np.array([t]), course)[0][0])
    if problem.scheduled:
        weight, kicks = pulses(course or Course(problem, t), t)
        return np.expm1(1j * np.multiply.outer(k, kicks)) @ weight / problem.data.alpha
    v, x, alpha = problem.rate, problem.rate * problem.decay, problem.data.alpha
    if x * t <= 0.1:
        turns = float(np.max(k, initial=0.0)) * v * -math.expm1(-x * t)  # radians
        nodes, weights = gauss_legendre(min(MANY, 8 + 8 * math.ceil(turns / 8)))
        age, weight = t * (1 + nodes) / 2, t * weights / 2
        boosts = np.expm1(1j * v * np.multiply.outer(k, np.exp(-x * age)))
        return boosts @ weight / alpha
    # With w = e^{−vλs} this is ∫ (e^{ikvw} − 1)/w dw / αvλ, from w = e^{−vλt} to 1.
    old, new = (_entire(k * v * w) for w in (math.exp(-x * t), 1.0))
    return (new - old) / (alpha * x)


def _entire(z: Array) -> Any:
    """∫₀^z (e^{iw} − 1)/w dw = Σ (iz)ⁿ/(n n!) = Ci(z) − log z − γ + i Si(z)."""
    out, small = np.zeros(np.shape(z), complex), z < 1
    for n in range(18, 0, -1):  # Horner
        out[small] = 1j * z[small] * (1 / (n * math.factorial(n)) + out[small])
    far = z[~small]
    sine, cosine = scipy.special.sici(far)
    out[~small] = cosine - np.log(far) - np.euler_gamma + 1j * sine
    return out


def wave_numbers(top: float, reach: float) -> tuple[Array, Array]:
    """Nodes and weights on (0, top) that resolve waves e^{ikx} up to |x| = reach."""
    panels = math.ceil(min(max(top * reach / 60, 4.0), 2000.0))
    nodes, weights = gauss_legendre(PANEL)
    k = (np.arange(panels)[:, None] + (1 + nodes) / 2).ravel() * top / panels
    return k, np.tile(weights, panels) * top / panels / 2


def hebbian_errors(problem: Problem, t: Array, R: Array, Q: Array) -> Array:
    """P(ỹx < 0) at times, by `wrong`."""
    out, course = np.full(t.size, 0.5), Course(problem, float(t[-1]))
    mean, _ = shot_moments(problem, t, course)
    for i in np.flatnonzero(Q > 0):

        def boosts(k: Array, time: float = float(t[i])) -> Any:
            return np.exp(shot_exponent(problem, time, k, course))

        out[i] = wrong(problem.teacher, R[i], Q[i], mean[i], boosts)
    return out


def wrong(data: Teacher, R: float, Q: float, mean: float, boosts: Callable[[Array], Any]) -> float:
    """P(ỹx < 0) = ½ − (1/π) ∫₀^∞ Im χ(k)/k dk, χ(k) = ⟨e^{ikỹx}⟩ (Gil-Pelaez).

    ỹx = R yỹ + √(C − R²) z + W, and ⟨e^{ikRyỹ}⟩ = e^{−q²/2}[1 + i erfi(δq/√2)], q = kR,
    δ² = 1/(1 + ε²); `boosts` is ⟨e^{ikW}⟩, and `mean` ⟨W⟩.
    """
    delta = 1 / math.sqrt(1 + data.noise**2)
    variance = max(Q - (delta * R) ** 2, 1e-300)
    k, weight = wave_numbers(9.0 / math.sqrt(variance), mean + math.sqrt(Q))
    width = np.exp(-(k**2) * variance / 2)
    q = delta * R * k / math.sqrt(2)
    teacher = np.exp(-(q**2)) + 2j / math.sqrt(math.pi) * scipy.special.dawsn(q)
    chi = width * teacher * boosts(k)
    return float(np.clip(0.5 - (chi.imag / k) @ weight / math.pi, 0.0, 1.0))


def _learned(x: Array, t: Array) -> Array:
    """e(t) for finite times, 1/x for t = inf."""
    forever = np.isinf(t)
    e = learned(x, np.where(forever, 0.0, t))
    return np.where(forever, 1 / np.where(x > 0, x, np.inf)[:, None], e)
