"""On-line learning as the paper's Eq. (1) says it, in plain numpy: the judge of the theory."""

import numpy as np


def simulate(problem, n, samples, steps, seed):
    """R, Q, F2 and C per sample, at given step numbers: samples × times (× times)."""
    rng = np.random.default_rng(seed)
    data, v, noise = problem.data, problem.rate, problem.data.noise
    p = round(data.alpha * n)
    everyone = np.arange(samples)
    B = rng.standard_normal((samples, n))
    B /= np.linalg.norm(B, axis=1, keepdims=True)
    X = rng.standard_normal((samples, p, n))
    target = np.einsum("spn,sn->sp", X, B) + noise * rng.standard_normal((samples, p))
    if data.task == "classification":
        target = np.sign(target)
    linear = problem.rule.name == "adaline"  # else Hebbian
    J, snapshots = np.zeros((samples, n)), []
    for step in range(max(steps) + 1):
        if step in steps:
            snapshots.append(J.copy())
        drawn = rng.integers(p, size=samples)
        xi, aim = X[everyone, drawn], target[everyone, drawn]
        force = aim - linear * np.einsum("sn,sn->s", J, xi)
        J += v / n * (force[:, None] * xi - problem.decay * J)
        if problem.temperature:
            J += np.sqrt(2 * problem.temperature) / n * rng.standard_normal((samples, n))
    past = np.stack(snapshots, axis=1)
    C = np.einsum("stn,sun->stu", past, past)
    forces = target[:, :, None] - linear * np.einsum("spn,stn->spt", X, past)
    return {
        "R": np.einsum("sn,stn->st", B, past),
        "Q": np.einsum("stt->st", C),
        "F2": (forces**2).mean(axis=1),
        "C": C,
    }


def estimate(problem, times, n, samples, seed, chunk=100):
    """Mean and standard error of each quantity at one size."""
    steps = [round(t * n) for t in times]
    chunks = [simulate(problem, n, chunk, steps, [seed, n, i]) for i in range(samples // chunk)]
    out = {}
    for name in chunks[0]:
        values = np.concatenate([c[name] for c in chunks])
        out[name] = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return out


def extrapolated(problem, times, n, samples, seed):
    """Mean and standard error for N → ∞ from sizes n and 2n, corrections being of order 1/N."""
    small = estimate(problem, times, n, samples, seed)
    large = estimate(problem, times, 2 * n, samples, seed)
    return {
        name: (2 * large[name][0] - small[name][0], np.hypot(2 * large[name][1], small[name][1]))
        for name in small
    }
