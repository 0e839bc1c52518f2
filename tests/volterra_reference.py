"""F2 and Q of Adaline learning by brute force: the Volterra equation as it stands on paper.

Nothing is shared with the package: the Marchenko–Pastur integrals are trapezoidal sums in the
angle, and F2 is a polynomial on each of many time steps, fixed at Gauss nodes by the equation

    F2(t) = f₀(t) + ∫₀ᵗ K(t−s) F2(s) ds,   K(τ) = v² ∫ρ h² e^{−2xτ}.
"""

import numpy as np

ORDER = 6
NODES, _ = np.polynomial.legendre.leggauss(ORDER)
NODES = (1 + NODES) / 2
COEFFICIENTS = np.linalg.inv(np.vander(NODES, increasing=True))  # of the Lagrange polynomials
FINE, FINE_WEIGHTS = np.polynomial.legendre.leggauss(32)
FINE, FINE_WEIGHTS = (1 + FINE) / 2, FINE_WEIGHTS / 2


def law(alpha, decay):
    centre, r = 1 + 1 / alpha, 2 / np.sqrt(alpha)
    gap = np.arccosh(centre / r) if decay == 0 else min(np.arccosh(centre / r), 1.0)
    n = int(np.clip(25 / gap, 300, 6000))
    angle = np.arange(1, n) * np.pi / n
    h = centre + r * np.cos(angle)
    return h, alpha * (r * np.sin(angle)) ** 2 / (2 * np.pi * h) * np.pi / n


def kernel_moments(rate, c):
    """∫₀ᶜ e^{−rate(c−u)} u^p du for p < ORDER and every rate."""
    low = np.exp(-np.outer(rate, c - c * FINE)) @ (
        (FINE_WEIGHTS * c)[:, None] * np.vander(c * FINE, ORDER, increasing=True)
    )
    high = np.empty_like(low)  # by parts, stable where the kernel is narrow
    high[:, 0] = -np.expm1(-rate * c) / rate
    for p in range(1, ORDER):
        high[:, p] = (c**p - p * high[:, p - 1]) / rate
    return np.where((rate * c > 25)[:, None], high, low)


def brute_force(problem, times):
    """F2 and Q at rising times."""
    a, b, alpha = problem.data.a, problem.data.b, problem.data.alpha
    v, decay, T = problem.rate, problem.decay, problem.temperature
    h, rho = law(alpha, decay)
    x = v * (decay + h)
    w = a**2 * h**2 + (b - a**2) * h / alpha
    kernel = v**2 * rho * h**2

    def f0(t):
        E = np.exp(-np.outer(t, x))
        e = (1 - E) / x
        return b + (v**2 * h * e**2 - 2 * v * e) @ (rho * w) + (1 - E**2) @ (T * rho * h / x)

    S = np.zeros_like(x)  # ∫₀ᵗ e^{−2x(t−s)} F2(s) ds
    t, step, out = 0.0, 0.02 / x.max(), []
    before = b
    for target in times:
        while t < target:
            d = min(step, target - t)
            A = np.array([kernel @ kernel_moments(2 * x * d, c) for c in NODES]) @ COEFFICIENTS * d
            history = np.exp(-2 * np.outer(NODES * d, x)) @ (kernel * S)
            F2 = np.linalg.solve(np.eye(ORDER) - A, f0(t + NODES * d) + history)
            S = np.exp(-2 * x * d) * S + d * kernel_moments(2 * x * d, 1.0) @ (COEFFICIENTS @ F2)
            t = target if d == target - t else t + d
            change = abs(np.log(abs(F2[-1] / before))) / d
            before = F2[-1]
            if d == step:  # F2 smooth on the step; the cap keeps 1 − A regular near v_c
                step = min(1.1 * step, 0.3 / max(change, 1e-12), 12 / (v * (1 + decay)))
        e = (1 - np.exp(-x * t)) / x
        null = max(0.0, 1 - alpha)
        heat = (rho / x) @ (1 - np.exp(-2 * x * t))
        y = v * decay
        heat += null * (2 * t if y == 0 else (1 - np.exp(-2 * y * t)) / y)
        Q = (rho * v**2 * w) @ e**2 + v**2 * (rho * h) @ S + T * heat
        out.append((f0(np.array([t]))[0] + kernel @ S, Q))
    return np.array(out).T
