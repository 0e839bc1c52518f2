"""Rates as people type them: scikit-learn's and PyTorch's names for v, λ, t and τ."""

from __future__ import annotations

import math

from manypass import schedules
from manypass.schedules import Cosine, Exponential, InverseTime, Schedule, Steps, Warmup


def scikit_learn(rate: float, decay: float, n: int, steps: int, window: int) -> dict[str, float]:
    """Return settings of ``SGDRegressor(learning_rate="constant", fit_intercept=False, tol=None)``.

    eta0 = v/N, alpha = λ; `average` is the example from which on weights are averaged (0: none).
    """
    average = steps - window + 1 if window > 1 else 0
    return {"eta0": rate / n, "alpha": decay, "average": float(average)}


def pytorch(rate: float, decay: float, n: int) -> dict[str, float]:
    """Return settings of ``torch.optim.SGD`` with ``nn.MSELoss()``: mean of (ỹ − x)².

    lr = v/2N and weight_decay = 2λ. For a loss with the factor ½, double lr and halve
    weight_decay.
    """
    return {"lr": rate / (2 * n), "weight_decay": 2 * decay}


def typed(
    rate: float | Schedule,
    decay: float,
    n: int,
    batch_size: int,
    passes: int,
    steps: int,
    window: int,
) -> dict[str, str]:
    """Return training as one would type it for scikit-learn (where it can) and for PyTorch."""
    step = batch_size / n  # of time
    v = float(schedules.at(rate, 0.0)) or float(schedules.at(rate, math.inf))
    theirs, ours = scikit_learn(v, decay, n, steps, window), pytorch(v, decay, n)
    average = f", average={int(theirs['average'])}" if theirs["average"] else ""
    kind = 'learning_rate="constant"'
    if isinstance(rate, InverseTime):
        kind = f'learning_rate="invscaling", power_t={rate.power:.4g}'
    known = not isinstance(rate, Schedule) or (
        isinstance(rate, InverseTime) and math.isclose(rate.tau, step)
    )
    sklearn = (
        f'SGDRegressor(penalty="l2", alpha={decay:.4g}, {kind}, eta0={theirs["eta0"]:.4g}, '
        f"max_iter={passes}, tol=None, fit_intercept=False{average})"
    )
    optimizer = f"SGD(lr={ours['lr']:.4g}, weight_decay={ours['weight_decay']:.4g})"
    scheduler = _scheduler(rate, step)
    return {
        "scikit_learn": sklearn if known and batch_size == 1 else "",
        "pytorch": optimizer + (f", {scheduler} at every step" if scheduler else ""),
    }


def _scheduler(rate: float | Schedule, step: float) -> str:
    """Return PyTorch's scheduler of a rate, stepped once for each step of so much time."""
    match rate:
        case Cosine(low=0.0):
            return f"CosineAnnealingLR(T_max={round(rate.until / step)})"
        case Exponential():
            return f"ExponentialLR(gamma={math.exp(-step / rate.tau):.8g})"
        case InverseTime():
            power = "" if rate.power == 1 else f"**{rate.power:.4g}"
            return f"LambdaLR(lambda k: 1 / (1 + k / {rate.tau / step:.6g}){power})"
        case Warmup(then=float()):
            return f"LambdaLR(lambda k: min(1, k / {rate.until / step:.6g}))"
        case Steps(pieces=((_, first), (_, second), *_)):
            marks = [math.ceil(time / step * (1 - 1e-12)) for time in rate.breaks]
            return f"MultiStepLR(milestones={marks}, gamma={second / first:.4g})"
    return ""
