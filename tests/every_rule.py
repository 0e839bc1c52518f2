"""One of each rule, a user's own with a parameter among them."""

import manypass as mp


def cubic(x, target, strength):
    return strength * (target - x) ** 3


def cubic_slope(x, target, strength):
    return -3 * strength * (target - x) ** 2


RULES = [
    mp.Hebbian(),
    mp.Adaline(),
    mp.Adatron(kappa=0.8),
    mp.Perceptron(kappa=0.2),
    mp.Logistic(),
    mp.Huber(width=0.7),
    mp.Rule(force=cubic, slope=cubic_slope, strength=0.1),
]
