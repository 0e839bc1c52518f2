"""Networks with two layers on a card: one is one block, all its units in registers."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda

from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.layers.activation import activate
from manypass.layers.errors import generalization
from manypass.layers.net import Net
from manypass.simulation.cuda import kernels
from manypass.simulation.cuda.kernels import DIVERGED, FINE, WARPS, product
from manypass.simulation.cuda.lanes import LANES, load4, warp_sum
from manypass.simulation.cuda.networks import BLOCK, GRID, STEPS, Examples, Networks, shape
from manypass.simulation.cuda.philox import HEAT, INPUTS, TARGETS, normals
from manypass.simulation.layered import SEEDS, SIGNS
from manypass.simulation.network import pace

act = cuda.jit(device=True)(activate)


@cuda.jit
def label(X, B, b, targets, width, taught, noise, classify, seed, first, purpose, start):  # type: ignore[no-untyped-def]
    """ỹ = Σ_m b_m g(B_m·ξ) + εz or its sign, for examples from `start` on."""
    s, warp, p = cuda.blockIdx.x, cuda.threadIdx.x // LANES, targets.shape[1]
    for i in range(warp, p, WARPS):
        y = 0.0
        for m in range(b.size):
            field = product(B, (s * b.size + m) * width, X, (s * p + i) * width, width)
            y += b[m] * act(float(field), taught)[0]
        if cuda.threadIdx.x % LANES == 0:
            if noise > 0:
                y += noise * normals(seed, np.uint64(first + s), purpose, np.uint64(start + i))[0]
            if classify:
                y = 1.0 if y >= 0 else -1.0
            targets[s, i] = y


@lru_cache(maxsize=64)
def learning(K: int, kind: int, quads: int, warps: int, real: Any, hot: bool, moving: bool) -> Any:
    """Return the kernel that learns; as `kernels.learning`, for K units and a second layer."""
    threads, held = warps * LANES, 4 * quads
    all_held = K * held  # sizes are constants of a kernel, not expressions

    @cuda.jit
    def learn(X, targets, order, J, second, lost, span, settings, paces):  # type: ignore[no-untyped-def]
        s, t = cuda.blockIdx.x, cuda.threadIdx.x
        n, width, p, offset, count, step, first, seed = span
        rate, keep, kick, limit, pace_a = settings
        parts = cuda.shared.array((2, K, warps), real)
        w, here = cuda.local.array(all_held, real), cuda.local.array(held, real)
        then, a = cuda.local.array(held, real), cuda.local.array(K, np.float64)
        g, rise = cuda.local.array(K, np.float64), cuda.local.array(K, np.float64)
        sequence, aims, base = order[s], targets[s], s * p * width
        m = sequence[offset]
        aim = float(aims[m])
        for u in range(K):
            a[u] = second[s, u]
        for k in range(quads):
            j = 4 * (t + k * threads)
            for i in range(4):
                here[4 * k + i] = real(0)
            if j < width:
                row = load4(X, base + m * width + j)
                for i in range(4):
                    here[4 * k + i] = row[i]
            for u in range(K):
                if j < width:
                    row = load4(J, (s * K + u) * width + j)
                    for i in range(4):
                        w[u * held + 4 * k + i] = row[i]
                else:
                    for i in range(4):
                        w[u * held + 4 * k + i] = real(0)
        m = sequence[min(offset + 1, sequence.size - 1)]
        status, scale = lost[s], 1.0
        for i in range(count):
            if status != FINE:
                break
            coming = sequence[min(offset + i + 2, sequence.size - 1)]
            soon = float(aims[m])
            for k in range(quads):
                j = 4 * (t + k * threads)
                if j < width:
                    row = load4(X, base + m * width + j)
                    for q in range(4):
                        then[4 * k + q] = row[q]
                else:
                    for q in range(4):
                        then[4 * k + q] = real(0)
            for u in range(K):
                dot = real(0)
                for k in range(held):
                    dot += w[u * held + k] * here[k]
                dot = warp_sum(dot)
                if t % LANES == 0:
                    parts[i & 1, u, t // LANES] = dot
            cuda.syncthreads()
            left = aim
            for u in range(K):
                x = 0.0
                for k in range(warps):
                    x += parts[i & 1, u, k]
                x *= scale
                if not abs(x) < limit:
                    status = DIVERGED
                g[u], rise[u] = act(x, kind)
                left -= a[u] * g[u]
            if not abs(left) < limit:
                status = DIVERGED
            if moving:
                rate, keep = paces[0, i], paces[1, i]
            scale *= keep
            for u in range(K):
                pull = real(rate * left * a[u] * rise[u] / scale)
                a[u] += pace_a * left * g[u]
                for k in range(held):
                    w[u * held + k] += pull * here[k]
                if hot:
                    for k in range(quads):
                        j = 4 * (t + k * threads)
                        row_of = np.uint64(step + i) * np.uint64(K) + np.uint64(u)
                        place = row_of * np.uint64(width // 4) + np.uint64(j // 4)
                        z = normals(seed, np.uint64(first + s), HEAT, place)
                        for q in range(4):
                            if j + q < n:
                                w[u * held + 4 * k + q] += real(kick / scale) * z[q]
            for k in range(held):
                here[k] = then[k]
            if scale < 1e-6 or i == count - 1:
                for k in range(K * held):
                    w[k] *= real(scale)
                scale = 1.0
            aim, m = soon, coming
        for u in range(K):
            for k in range(quads):
                for i in range(4):
                    j = 4 * (t + k * threads) + i
                    if j < width:
                        J[(s * K + u) * width + j] = w[u * held + 4 * k + i]
        if t == 0:
            lost[s] = status
            for u in range(K):
                second[s, u] = a[u]

    return learn


@lru_cache(maxsize=64)
def measuring(K: int, M: int, kind: int, classify: bool) -> Any:
    """Return the kernel that measures ⟨|F|²⟩, E_t, J_k·J_l and J_k·B_m, one row a network."""

    @cuda.jit
    def measure(X, targets, J, second, B, width, found):  # type: ignore[no-untyped-def]
        s, warp = cuda.blockIdx.x, cuda.threadIdx.x // LANES
        sums = cuda.shared.array((2, WARPS), np.float64)
        g, rise = cuda.local.array(K, np.float64), cuda.local.array(K, np.float64)
        p, square, missed = targets.shape[1], 0.0, 0.0
        for i in range(warp, p, WARPS):
            aim = float(targets[s, i])
            left = aim
            for u in range(K):
                x = float(product(J, (s * K + u) * width, X, (s * p + i) * width, width))
                g[u], rise[u] = act(x, kind)
                left -= second[s, u] * g[u]
            for u in range(K):
                square += (left * second[s, u] * rise[u]) ** 2
            if classify:
                right = (aim - left) * aim
                missed += 0.5 if right == 0 else (1.0 if right < 0 else 0.0)
            else:
                missed += 0.5 * left * left
        if cuda.threadIdx.x % LANES == 0:
            sums[0, warp], sums[1, warp] = square, missed
        place = 2
        for u in range(K):
            for q in range(K + M):
                if q < K:
                    whole = product(J, (s * K + u) * width, J, (s * K + q) * width, width)
                else:
                    whole = product(J, (s * K + u) * width, B, (s * M + q - K) * width, width)
                if cuda.threadIdx.x == 0:
                    found[s, place] = whole
                place += 1
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            for k in range(1, WARPS):
                square += sums[0, k]
                missed += sums[1, k]
            found[s, 0], found[s, 1] = square / p, missed / p

    return measure


class LayeredNetworks(Networks):
    """Networks with two layers; J is K rows a network, B of M."""

    def prepare(self) -> None:
        """Teachers and first weights come from the CPU's random numbers."""
        net = self.net = Net.of(self.problem)
        K, M = net.units
        n, width = self.method.n, 4 * math.ceil(self.method.n / 4)
        B = np.zeros((self.count, M, width), self.real)
        J = np.zeros((self.count, K, width), self.real)
        for s in range(self.count):
            seed = np.random.SeedSequence(self.method.seed, spawn_key=(self.first + s, 4))
            Z = np.random.default_rng(seed).standard_normal((M + K, n))
            B[s, :, :n], J[s, :, :n] = net.weights(Z)
        self.B, self.started = cuda.to_device(B.ravel()), J.ravel()
        self.second = cuda.to_device(np.tile(net.a, (self.count, 1)))
        self.outer = cuda.to_device(net.b)

    def teach(self, p: int, width: int) -> None:
        """Draw the examples that the teachers label."""
        self.prepare()
        self.examples = Examples.empty(self.count, p, width, self.real)
        self.label(self.examples, INPUTS, TARGETS, 0)

    def label(self, examples: Examples, inputs: Any, noise: Any, start: int) -> None:
        """Draw inputs and their targets, from example `start` on."""
        width, seeds, net = examples.width, (self.seed, self.first), self.net
        kernels.fill[GRID, BLOCK](
            examples.X, self.law.none, self.method.n, width, examples.p, *seeds, inputs, start
        )
        how = (net.taught, net.noise, net.classify)
        label[self.count, WARPS * LANES](
            examples.X, self.B, self.outer, examples.targets, width, *how, *seeds, noise, start
        )

    def beginnings(self, width: int) -> Array:
        """J(0) of every network, its units one behind the other."""
        return np.asarray(self.started)

    def compile(self) -> None:
        """Nothing: a Committee's force is in the kernels."""

    def advance(self, until: float, total: Any = None) -> int:
        """Learn until the given time; returns the steps."""
        left = taken = max(round(until * self.method.n) - self.step, 0)
        problem, n, e, net = self.problem, self.method.n, self.source, self.net
        kick = math.sqrt(2 * problem.temperature) / n
        K = len(net.a)
        quads, warps = shape(e.width, kick > 0, K)
        moving = problem.scheduled
        kernel = learning(K, net.kind, quads, warps, self.real, kick > 0, moving)
        limit = 1e100 if self.real is np.float64 else 1e15
        first = pace(problem, n, np.zeros(1))
        second = problem.rule.second_rate / n  # type: ignore[attr-defined]
        settings = (*first[:, 0].tolist(), kick, limit, second)
        paces = cuda.to_device(first)
        while left > 0:
            offset = self.draw()
            count = min(left, self.drawn - self.step, STEPS)
            if moving:
                t = np.arange(self.step, self.step + count) / n
                paces = cuda.to_device(pace(problem, n, t))
            span = (n, e.width, e.p, offset, count, self.step, self.first, self.seed)
            tables = (e.X, e.targets, self.order, self.J, self.second, self.lost)
            kernel[self.count, warps * LANES](*tables, span, settings, paces)
            self.step += count
            left -= count
            cuda.synchronize()
        return taken

    def weights(self) -> Array:
        """J of every network (networks × K × N)."""
        J = self.J.copy_to_host().reshape(self.count, len(self.net.a), -1)
        return np.asarray(J[:, :, : self.method.n])

    def measure(self, J: Any = None) -> Measured:
        """Return what `LayeredSample.measured` gives, for every network."""
        net, e = self.net, self.examples
        K, M = net.units
        found = cuda.device_array((self.count, 2 + K * (K + M)), np.float64)
        kernel = measuring(K, M, net.kind, net.classify)
        kernel[self.count, WARPS * LANES](
            e.X, e.targets, self.J, self.second, self.B, e.width, found
        )
        table, a = found.copy_to_host(), self.second.copy_to_host()
        lost = (self.lost.copy_to_host() != FINE) | ~np.isfinite(table).all(axis=1)
        products = table[:, 2:].reshape(-1, K, K + M)
        out: Measured = {"R": products[:, :, K:].copy(), "Q": products[:, :, :K].copy(), "a": a}
        out |= {"F2": table[:, 0].copy(), "Et": table[:, 1].copy(), "Eg": np.zeros(self.count)}
        for values in out.values():
            values[lost] = np.inf
        group = (self.first + np.arange(self.count)) % SEEDS
        for seed in range(SEEDS if net.classify else 1):
            mine = group == seed if net.classify else slice(None)
            given = (out["R"][mine], out["Q"][mine], a[mine], SIGNS, seed)
            out["Eg"][mine] = generalization(net, *given)
        if net.classify:
            out["Et"][lost] = 0.5
        return out | {"diverged": lost.astype(float)}

    def correlations(self, kept: list[Array], lost: Any) -> Array:
        """C(t,s) of every network (networks × times × times × K × K)."""
        J = np.stack(kept, axis=1)
        C = np.einsum("ntkj,nslj->ntskl", J, J, optimize=True).astype(float)
        C[lost[:, :, None] | lost[:, None, :]] = np.inf
        return np.asarray(C)
