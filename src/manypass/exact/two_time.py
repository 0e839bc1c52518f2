"""Two-time functions of linear rules: C(t,s), G(t,s), ⟨F(t)F(s)⟩ and the example response D."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, memory, orders, results
from manypass.checks import Array
from manypass.exact.course import Course
from manypass.exact.modes import Modes, State, linear_modes
from manypass.problem import Problem, checked


def causal_sum(x: Array, t: Array, B: Array) -> Array:
    """L(t,s) = Σ_k e^{−x_k(t−s)} B_k(s) for t ≥ s in rising times, 0 above the diagonal.

    Split the times in two: for t late and s early the exponential factorises at the split, where
    neither factor can overflow, into one matrix product; the halves are the same problem again.
    """
    if t.size <= 8:
        lag = np.maximum(t[:, None] - t, 0.0)
        return np.tril(np.einsum("kts,ks->ts", np.exp(-x[:, None, None] * lag), B))
    half = t.size // 2
    out = np.zeros((t.size, t.size))
    out[:half, :half] = causal_sum(x, t[:half], B[:, :half])
    out[half:, half:] = causal_sum(x, t[half:], B[:, half:])
    late = np.exp(-np.outer(t[half:] - t[half], x))
    early = np.exp(-np.outer(x, t[half] - t[:half])) * B[:, :half]
    out[half:, :half] = late @ early
    return out


def noise_correlation(h: Array, state: State, n: Array) -> Array:
    """Σ_k e^{−∫x_k} n_k(min(t,s)); what has diverged by min(t,s) stays inf."""
    diverged = np.isinf(n).any(axis=0)
    lower = faded(h, state, np.where(diverged, 0.0, n))
    lower[:, diverged] = np.inf
    return np.tril(lower) + np.tril(lower, -1).T


def correlation(modes: Modes, state: State) -> Array:
    """C(t,s) = mean part + Σ ρ e^{−∫x} n(min(t,s)), the paper's Eq. (C)."""
    return modes.mean_C(state) + noise_correlation(modes.h, state, modes.S[:, None] * state.n)


def response(modes: Modes, state: State) -> Array:
    """G(t,s) = ∫ρ e^{−∫x} from s to t for t ≥ s, else 0; ρ_Σ if inputs are correlated."""
    every = np.broadcast_to(modes.S[:, None], (modes.h.size, state.s.shape[1]))
    return faded(modes.h, state, every)


def faded(h: Array, state: State, B: Array) -> Array:
    """Σ_k e^{−∫x_k} B_k(s) from s to t for t ≥ s, ∫x = h∫v + ∫vλ, and 0 above the diagonal."""
    S, L = state.s
    return np.asarray(np.exp(-np.maximum(L[:, None] - L, 0.0)) * causal_sum(h, S, B))


def force_autocorrelation(problem: Problem, times: Any) -> xr.DataArray:
    """⟨F(t)F(s)⟩ = f₀ + Σ ρ f u(t)u(s) + Σ ρ h e^{−∫x} n(min(t,s)), over the training set.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> FF = mp.force_autocorrelation(problem, [0.5, 1, 2])
    >>> [round(float(F2), 6) for F2 in FF.values.diagonal()]
    [0.895006, 0.76156, 0.702242]
    """
    t = checks.increasing("times", times, results.LATEST)
    memory.require(8 * 8 * t.size**2, "take fewer `times`")
    course = Course(orders.require(checked(problem), "force_autocorrelation"), float(t[-1]))
    modes, state = course.modes, course.at(t)
    mean = sum(part.T @ (w[:, None] * part) for w, part in modes.residuals(state))
    noise = noise_correlation(modes.h, state, (modes.rho * modes.h)[:, None] * state.n) + modes.f0
    return results.array(problem, "FF", mean + noise, {"t": t, "s": t})


def example_response(problem: Problem, lags: Any) -> xr.DataArray:
    """D(τ) = δ(τ) − (v/α) ∫ρ h e^{−xτ}: the response of x to its own cavity activation h.

    The returned curve is the regular part, D(τ) − δ(τ). It is the inverse Laplace transform of
    D̃(z) = 1/(1 + (v/α) G̃(z)); for Hebbian learning it is zero.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Adaline(), rate=1.0, decay=0.2)
    >>> float(mp.example_response(problem, [0.0])[0].round(12))  # −v/α
    -0.5
    """
    tau = checks.increasing("lags", lags, results.LATEST)
    plain = orders.require(checked(problem), "example_response")
    modes = linear_modes(plain)
    weight = plain.rate / problem.data.alpha * modes.rho * modes.h
    return results.array(problem, "D", -weight @ np.exp(-np.outer(modes.x, tau)), {"lag": tau})
