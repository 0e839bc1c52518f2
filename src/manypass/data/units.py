"""Rates as people type them: scikit-learn's and PyTorch's names for v, λ, t and τ."""

from __future__ import annotations


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
