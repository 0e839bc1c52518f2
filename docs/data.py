"""Draw docs/data.png: SGD on handwritten digits, odd against even, predicted and measured."""

import numpy as np
from sklearn.datasets import load_digits

import manypass as mp

digits = load_digits()
X = digits.data[:, digits.data.std(axis=0) > 0]
y = np.where(digits.target % 2, 1, -1)
train, test = np.split(np.random.default_rng(0).permutation(len(y)), [1347])
data = mp.Dataset(X[train], y[train], X[test], y[test], standardize=True)
problem = mp.Problem(data, mp.Adaline(), rate=0.03, decay=0.05)
end = 6 * data.alpha  # passes
theory = mp.solve(problem, np.linspace(0, end, 121))
runs = mp.solve(problem, np.linspace(0, end, 13), mp.Simulation(samples=100, seed=0))
figure, (left, right) = mp.plot.new_figure(2)
mp.plot.curves(theory, runs, variables=mp.plot.SQUARES, ax=left)
mp.plot.curves(theory, runs, variables=mp.plot.ERRORS, ax=right)
mp.plot.save_figure(figure, "docs/data.png")
