"""Curves of a fixed order: the coefficients of its generating functions, epoch by epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manypass.checks import Array
from manypass.exact.epochs import ROUNDING, _agree, lines, located, unresolved
from manypass.exact.fixed import DIGITS, Fixed, Phase, nearest_branch, power
from manypass.exact.lines import Cells, Line
from manypass.exact.training_error import gaussian_errors
from manypass.problem import Problem
from manypass.spectrum import gauss_legendre

ENOUGH = (32, 64, 128, 256)  # epochs after which learning may have settled
STILL = 1e-7  # relative change in the last quarter of them, if it has
MOST = 500  # epochs
MOST_GROWING = 100  # of a rate above v_c: none of them ever settles
LARGEST = 320.0  # digits of a Q ~ r^{−2k} after k epochs that no number holds, whatever its factor


class Circle:
    """Coefficients of Σ_k A_k z^k, k < count, from points |z| = r; r = 0 reads the first alone."""

    def __init__(self, count: int, radius: float) -> None:
        size = max(6 * count, 36) if radius else 1
        r = radius * 10 ** (-DIGITS / size)
        self.z = r * np.exp(2j * np.pi * np.arange(size) / size)
        self.half = self.z[: size // 2 + 1]  # coefficients are real: the rest is the conjugate
        twice = np.where(np.arange(self.half.size) % max(size // 2, 1) == 0, 1.0, 2.0) / size
        power = np.arange(count)[:, None]
        self.read, self.read_half = (
            (z**-power * weight if radius else np.ones((1, 1), complex))
            for z, weight in ((self.z, 1 / size), (self.half, twice))
        )
        # z^k z′^k is the same for all pairs of points whose angles have the same sum.
        first = np.arange(self.half.size)
        self.pair = (first, (np.arange(size)[:, None] - first) % size)
        angles = np.outer(np.arange(count), np.arange(size))
        root = np.exp(-2j * np.pi * (angles % size) / size) / size
        self.read_pair = r ** (-2.0 * power) * root if radius else np.ones((1, 1))
        self.twice = twice

    def single(self, values: Any) -> Array:
        """Coefficients of z^k of values (… × half circle × 1)."""
        return np.asarray((values[..., 0] @ self.read_half.T).real)

    def diagonal(self, values: Any) -> Array:
        """Coefficients of z^k z′^k of values (… × half circle × circle)."""
        summed = values[..., self.pair[0], self.pair[1]] @ self.twice
        return np.asarray((summed @ self.read_pair.T).real)


class Repeated:
    """A problem with a fixed order, up to the epoch in which the last of some times lies."""

    def __init__(self, problem: Problem, t: Array, *, until_settled: bool = True) -> None:
        self.problem, self.step = problem, problem.batch_share * problem.teacher.alpha
        self.epoch, self.phase = located(problem, t)
        with np.errstate(all="ignore"):
            self.own_radius = nearest_branch(problem, self.step, 1.0)
            self.radius = convergence(problem, self.step, self.own_radius)
        digits = -2 * math.log10(self.radius) * self.epoch  # of Q, if it grows
        self.lost = (digits > LARGEST) & until_settled  # C and G want every epoch
        self.epoch = np.where(self.lost, 0, self.epoch)
        count = int(self.epoch.max()) + 1
        for few in ENOUGH if until_settled and self.radius == 1 else ():
            if few >= count:
                break
            if few * self._pace < 1:  # not even the fastest mode has relaxed
                continue
            looks = problem.teacher.alpha * few * np.array([0.75, 1.0])
            early = np.array([*Repeated(problem, looks, until_settled=False).curves.values()]).T
            if np.isfinite(early[1]).all() and np.allclose(
                early[0], early[1], STILL, 10 * ROUNDING
            ):
                self.epoch, count = np.minimum(self.epoch, few - 1), few
        most = MOST if self.radius == 1 else MOST_GROWING
        if count > most:
            instead = ", or the steady state" if self.radius == 1 else ""
            raise ValueError(
                f"`times` up to {count} epochs: of a fixed order{self._above()} at most {most} can "
                f"be followed; take earlier ones{instead}"
            )
        # What diverges ends as inf; of many small products threads would wait for each other.
        with np.errstate(all="ignore"), threadpool_limits(1):
            self._follow(count)

    def _follow(self, count: int) -> None:
        problem = self.problem
        self.circle = Circle(count, self.radius)
        self.kernels = on_circle(problem, self.step, self.circle)
        # R grows less than Q, if at all: on the circle of Q it would drown in rounding.
        self.own = Circle(count, self.own_radius) if self.radius < self.own_radius else None
        if self.own is not None:
            z = self.own.half[:, None]
            self.mean = Phase(problem, self.step, z, 1 / (1 - z))
        found: dict[str, Array] = {}
        for line in lines(problem):
            before, self.line = found, line
            self.looks = [Look(self.kernels, self.circle, line)]
            found = self.curves = self._curves()
            if before and all(_agree(found[name], before[name]) for name in found):
                break
        else:
            if not problem.batch_share:
                raise ValueError(unresolved(problem, self._above(", which is ")))

    @property
    def _pace(self) -> float:
        """vα[λ + (1 + 1/√α)²], how much of the fastest mode an epoch takes."""
        alpha = self.problem.teacher.alpha
        top = (1 + 1 / math.sqrt(alpha)) ** 2
        return self.problem.rate * alpha * (self.problem.decay + top)

    def _above(self, word: str = " ") -> str:
        """Say that the rate is above v_c, if it is."""
        if self.radius == 1:
            return ""
        from manypass.exact.settled import log_growth  # which asks here
        from manypass.exact.steady import critical_rate

        if not log_growth(self.problem) > 0:  # D alone ends there
            return ""
        limit = critical_rate(self.problem)
        return f"{word}above its critical rate v_c = {limit:.6g}"

    def _curves(self) -> dict[str, Array]:
        table = [self.looks[0].order_parameters(phase) for phase in self.line.s]
        if self.own is not None:
            a = self.looks[0].a
            for phase, row in zip(self.line.s, table, strict=True):
                row["R"] = a - self.own.single(self.mean.r(phase))
        return {name: self._read([row[name] for row in table]) for name in table[0]}

    def _read(self, table: list[Array]) -> Array:
        """Values at the times from those at the points of the line, point × epoch."""
        share = self.line.at(self.phase)
        values = np.sum(share * np.array(table)[:, self.epoch].T, axis=1)
        return np.where(np.isfinite(values) & ~self.lost, values, np.inf)

    def training_error(self) -> Array:
        """P(ỹx < 0): in the first epoch, where it starts as √t, at every time itself."""
        with np.errstate(all="ignore"), threadpool_limits(1):
            table = [self.looks[0].training_error(phase) for phase in self.line.s]
            out = self._read(table)
            origin = Circle(1, 0.0)
            first = Look(on_circle(self.problem, self.step, origin), origin, self.line)
            for i in np.flatnonzero(self.epoch == 0):
                phase = float(self.phase[i])
                out[i] = first.training_error(phase)[0] if phase > 0 else 0.5
        known = np.isfinite(out) & np.isfinite(self.curves["Q"])  # else a diverged student guesses
        return np.where(known & ~self.lost, out, 0.5)

    def two_time(self) -> tuple[Array, Array]:
        """C(t,s), and G(t,s) for t ≥ s, else 0.

        From ψ to a later phase φ the weights relax by e^{−x(φ−ψ)} and take up pushes that those
        at ψ had taken up in earlier epochs: with d = φ − ψ,

            c(φ,ψ) = e^{−xd} c(ψ,ψ) + z′(1 + g′) e^{−x′(α−d)} [M(φ) − e^{−(x+x′)d} M(ψ)].
        """
        with np.errstate(all="ignore"):  # what diverges ends as inf
            C, G = self._two_time()
        return np.where(np.isfinite(C), C, np.inf), G

    def _two_time(self) -> tuple[Array, Array]:
        kernels, circle, size = self.kernels, self.circle, self.epoch.size
        one, two, alpha = kernels.one, kernels.two, self.line.alpha
        x, x2 = one.x[:, 0], np.ravel(two.x)
        again = np.ravel(two.z * two.again)
        left, right = circle.read_half[self.epoch], circle.read[self.epoch]
        old, new = np.empty((size, x.size), complex), np.empty((size, x2.size), complex)
        for i, phase in enumerate(self.phase):
            M = kernels.M(phase)
            kept = kernels.relaxed(phase) * kernels.c0 + kernels.spare * M
            full = power(x2, alpha, self.step) * again
            old[i], new[i] = kept @ right[i] - M @ (full * right[i]), left[i] @ M
        C, G = np.zeros((size, size)), np.zeros((size, size))
        R = self.curves["R"]
        for i, (epoch, phase) in enumerate(zip(self.epoch, self.phase, strict=True)):
            d = phase - self.phase
            later = d >= 0
            relaxed = left[i] * power(x, np.where(later, d, 0.0)[:, None], self.step)
            pushed = right * again * power(x2, np.where(later, alpha - d, 0.0)[:, None], self.step)
            c = np.sum(relaxed * old, axis=1) + pushed @ new[i]
            C[i] = np.where(later, c.real + R[i] * R, 0.0)
            lag = np.maximum((epoch - self.epoch) * alpha + d, 0.0)[: i + 1]
            passes = np.maximum(np.ceil(lag / alpha - 1e-9) - 1, 0).astype(np.int64)
            rest = lag - passes * alpha
            fall = one.again[:, 0] * power(x, rest[:, None], self.step)
            G[i, : i + 1] = np.sum(circle.read_half[passes] * fall, axis=1).real
        return np.where(self.phase[:, None] >= self.phase, C, C.T), G


class Look:
    """What is seen of the kernels at one phase of every epoch."""

    def __init__(self, kernels: Fixed, circle: Circle, line: Line) -> None:
        self.kernels, self.circle, self.line = kernels, circle, line
        teacher = kernels.problem.teacher
        self.teacher, (self.a, self.b) = teacher, teacher.moments()
        self.q = np.array([kernels.learned(phase) for phase in line.s])

    def order_parameters(self, phase: float) -> dict[str, Array]:
        """R, Q and F2."""
        R, M = self.overlap(phase), self.kernels.M(phase)
        kept = self.kernels.relaxed(phase) * self.kernels.c0
        Q = R**2 + self.circle.diagonal(kept + self.kernels.spare * M)
        F2 = np.zeros_like(R)
        for weight, A, B, variance in self._activations(phase):
            rest = 1 - B
            F2 += weight @ (self.b * rest**2 - 2 * self.a * A * rest + A**2 + variance)
        return {"R": R, "Q": Q, "F2": F2}

    def training_error(self, phase: float) -> Array:
        """P(ỹx < 0)."""
        out = np.zeros(len(self.circle.read))
        for weight, A, B, variance in self._activations(phase):
            flat = (np.ravel(x) for x in (A, B, np.maximum(variance, 0.0)))
            out += weight @ gaussian_errors(self.teacher, *flat).reshape(A.shape)
        return out

    def overlap(self, phase: float) -> Array:
        """R."""
        return self.a - self.circle.single(self.kernels.one.r(phase))

    def _activations(self, phase: float) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Shares of examples, and A, B, σ² of their x = Ay + Bỹ + σz, example × epoch."""
        kernels, circle, one = self.kernels, self.circle, self.kernels.one
        R, M = self.overlap(phase), kernels.M(phase)
        for psi, weight, share, done in around(self.line, phase):
            q = np.tensordot(share, self.q, 1)
            own = kernels.v * one.response(phase, psi, done) * one.D
            learned = self.a * one.pole - one.r(psi[:, None, None])  # R(ψ)
            A, B = R - circle.single(own * learned), circle.single(own * one.pole)
            yield weight, A, B, circle.diagonal(kernels.variance(phase, M, psi, q, done))


def on_circle(problem: Problem, step: float, circle: Circle) -> Fixed:
    """Kernels at the pairs of points of a half circle and a circle."""
    z, z2 = circle.half[:, None], circle.z
    heat = 2 * problem.temperature / (1 - z * z2)
    return Fixed(problem, step, z, z2, pole=1 / (1 - z), pole2=1 / (1 - z2), heat=heat)


def around(line: Line, phase: float) -> Iterator[tuple[Array, Array, Array, bool]]:
    """Phases ψ of examples, their shares, weights on the line; first those that had their turn."""
    if isinstance(line, Cells):
        psi, pick = line.s[:-1], np.eye(line.n + 1)[:-1]
        done = psi < phase - line.step / 2
        for which in (done, ~done):
            if which.any():
                weight: Array = np.full(int(which.sum()), 1 / line.n)
                yield psi[which], weight, pick[which], which is done
        return
    u, weight = gauss_legendre(line.n // 2 + 4)
    for low, high in ((0.0, phase), (phase, line.alpha)):
        if high > low:
            psi = low + (high - low) * (1 + u) / 2
            yield psi, weight / 2 * (high - low) / line.alpha, line.at(psi), high == phase


def convergence(problem: Problem, step: float, most: float) -> float:
    """Radius r ≤ `most` ≤ 1 up to which series in z and z′ converge: below 1 learning diverges.

    `most` is that of a series in z alone.
    """
    angle = np.exp(1j * np.linspace(0, math.pi, 97))

    def inside(r: float) -> bool:
        z = r * angle
        with np.errstate(all="ignore"):
            last = np.abs(Fixed(problem, step, z, z.conj(), pole=1.0, pole2=1.0, heat=0.0).last)
        return bool(np.all(last < 1))  # NaN: no

    if inside(most * (1 - 1e-12)):
        return most
    low, high = -500.0, math.log(most)
    for _ in range(45):
        mid = (low + high) / 2
        low, high = (mid, high) if inside(math.exp(mid)) else (low, mid)
    return math.exp(low)
