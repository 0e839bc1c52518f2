"""The same question put to others: gradient flow on the digits, and SGD step by step.

Neural Tangents is timed where it is installed (`pip install neural-tangents`); scikit-learn is.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDRegressor

import manypass as mp

TIMES = np.linspace(0.0, 20.0, 200)


def main():
    X, target = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), np.where(target % 2, 1.0, -1.0)
    data = mp.Dataset(X[:1347], y[:1347], X[1347:], y[1347:])
    flow = mp.Problem(data, mp.Adaline(), rate=1.0, mode="batch")
    known, seconds = best_of(3, lambda: mp.solve(flow, TIMES).F2_test.values)
    print(f"gradient flow, 200 times, manypass: {1e3 * seconds:.0f} ms")
    neural_tangents(data, known)
    online = mp.Problem(data, mp.Adaline(), rate=0.03, decay=0.05)
    t = np.linspace(0, 5 * data.alpha, 120)
    expected, seconds = best_of(3, lambda: mp.solve(online, t).F2_test.values)
    print(f"SGD, 5 passes, expected error, manypass: {1e3 * seconds:.0f} ms")
    runs(online, float(expected[-1]), seconds)


def neural_tangents(data, known):
    try:
        import jax
        import neural_tangents as nt
    except ImportError:
        print("neural-tangents is not installed")
        return
    jax.config.update("jax_enable_x64", True)
    kernel = nt.stax.Dense(1, W_std=1.0, b_std=None)[2]
    X, X_test = data.X, data.X_test

    def answer():
        train, cross = kernel(X, None, "ntk"), kernel(X_test, X, "ntk")
        predict = nt.predict.gradient_descent_mse(train, data.y[:, None])
        # its mean loss falls by learning_rate/(p N) per unit of time, ours by H = XᵀX/p
        found = predict(TIMES * data.n, 0.0, 0.0, cross)[1]
        return np.mean((np.asarray(found)[..., 0] - data.y_test) ** 2, axis=-1)

    found, seconds = best_of(3, answer)
    print(
        f"gradient flow, 200 times, Neural Tangents: {1e3 * seconds:.0f} ms, "
        f"largest difference {np.max(np.abs(found - known)):.1e}"
    )


def runs(problem, expected, seconds):
    """How long scikit-learn needs for the expected error within 0.1 %."""
    data, errors = problem.data, []
    started = time.perf_counter()
    for seed in range(20):
        model = SGDRegressor(
            fit_intercept=False, alpha=problem.decay, learning_rate="constant",
            eta0=problem.rate / data.n, max_iter=5, tol=None, shuffle=True, random_state=seed,
        )  # fmt: skip
        model.fit(data.X, data.y)
        errors.append(np.mean((model.predict(data.X_test) - data.y_test) ** 2))
    each = (time.perf_counter() - started) / len(errors)
    needed = (np.std(errors, ddof=1) / (1e-3 * expected)) ** 2
    print(
        f"scikit-learn, one run of 5 passes: {1e3 * each:.1f} ms; {needed:.0f} runs for 0.1 % of "
        f"the last error: {needed * each / seconds:.1f} of the time of all 120 expected ones"
    )


def best_of(count, answer):
    """Return an answer and the least time it took, what is compiled or cached apart."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        found = answer()
        times.append(time.perf_counter() - started)
    return found, min(times)


if __name__ == "__main__":
    main()
