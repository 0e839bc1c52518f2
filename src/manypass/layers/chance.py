"""One-pass learning of networks of n weights, whose order parameters wander by chance.

Every example adds (v/n) F yᵀ to R and (v/n)(F xᵀ + x Fᵀ) + (v²/n) F Fᵀ to Q, and n of them make a
unit of time. Their means are the equations of `onepass`; their scatter adds noise of the covariance
Cov/n per unit time, to first order in 1/√n. A plateau multiplies it as it does the first asymmetry.
"""

from __future__ import annotations

import math

import numpy as np

from manypass.checks import Array
from manypass.layers.activation import slopes, values
from manypass.layers.averages import Fields
from manypass.layers.net import Net
from manypass.layers.onepass import DIVERGED, Course
from manypass.problem import Problem

STEP = 0.5  # of learning time ∫v dt
SEEN = 64  # examples whose scatter is the noise of a step


def curves(
    problem: Problem, fields: Fields, t: Array, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """R (t × K × M) and Q (t × K × K) of one network of n weights; inf once lost."""
    course, net = Course(problem, fields, False), fields.net
    start = Net.of(problem)  # with averages of another start
    state, now = course.joined(start.R, start.Q, start.a), 0.0
    K, M = net.units
    R, Q = np.full((t.size, K, M), np.inf), np.full((t.size, K, K), np.inf)
    for i, then in enumerate(t.tolist()):
        kicks = math.ceil((then - now) * max(float(problem.v(now)), 1.0) / STEP)
        d = (then - now) / max(kicks, 1)
        for kick in range(kicks):  # in the middle of each step
            ahead = d if kick else d / 2
            state, now = stepped(course, now, ahead, state), now + ahead
            state = state + math.sqrt(d / n) * scatter(course, now, state, rng)
            if not 0 < np.diag(course.split(state)[1]).min() <= np.abs(state).max() < DIVERGED:
                return R, Q  # it is, or n is too small for chance to be small beside what grows
        state = stepped(course, now, then - now, state)
        (R[i], Q[i]), now = course.split(state)[:2], then
    return R, Q


def stepped(course: Course, t: float, d: float, state: Array) -> Array:
    """Go on by the mean, a step of Runge and Kutta's."""
    one = course.rate(t, state)
    two = course.rate(t + d / 2, state + d / 2 * one)
    three = course.rate(t + d / 2, state + d / 2 * two)
    four = course.rate(t + d, state + d * three)
    return np.asarray(state + d / 6 * (one + 2 * two + 2 * three + four))


def scatter(course: Course, t: float, state: Array, rng: np.random.Generator) -> Array:
    """Noise with the covariance of what single examples add, times n."""
    net, (R, Q, a, *_) = course.net, course.split(state)
    v, rule = float(course.problem.v(t)), course.problem.rule
    w, u = np.linalg.eigh(np.block([[Q, R], [R.T, net.T]]))
    fields = rng.standard_normal((SEEN, w.size)) @ (u * np.sqrt(np.maximum(w, 0.0))).T
    x, y = fields[:, : len(a)], fields[:, len(a) :]
    target = values(y, net.taught) @ net.b + net.noise * rng.standard_normal(SEEN)
    target = np.where(target >= 0, 1.0, -1.0) if net.classify else target
    g = values(x, net.kind)
    left = target - g @ a
    F = left[:, None] * a * slopes(x, net.kind)
    pull = F[:, :, None] * x[:, None, :]
    own = v * (pull + np.swapaxes(pull, 1, 2)) + v * v * F[:, :, None] * F[:, None, :]
    added = [
        (v * F[:, :, None] * y[:, None, :]).reshape(SEEN, -1),
        own.reshape(SEEN, -1),
        rule.second_rate * left[:, None] * g,  # type: ignore[attr-defined]
    ]
    sign = rng.standard_normal(SEEN)
    return np.asarray((sign - sign.mean()) / math.sqrt(SEEN - 1) @ np.hstack(added))
