"""The Marchenko–Pastur law as nodes."""

import numpy as np
import pytest

import manypass as mp
from manypass.spectrum import empirical, marchenko_pastur

ALPHAS = [
    1e-6,
    0.01,
    0.3,
    0.9,
    0.999,
    1 - 1e-13,
    1.0,
    1 + 1e-9,
    1 + 1e-14,
    1.001,
    1.2,
    4.0,
    1e3,
    1e6,
]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_moments(alpha):
    law, c = marchenko_pastur(alpha), 1 / alpha
    for power, expected in enumerate((1, 1, 1 + c, 1 + 3 * c + c**2, 1 + 6 * c + 6 * c**2 + c**3)):
        assert law.rho @ law.h**power == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alpha", [a for a in ALPHAS if a != 1])
def test_inverse_moment(alpha):
    """∫_{h>0} ρ/h = rank/|1 − 1/α| diverges as α → 1: the hardest integral."""
    law = marchenko_pastur(alpha)
    spanned = law.h > 0
    inverse = law.rho[spanned] @ (1 / law.h[spanned])
    assert inverse == pytest.approx(law.rank * alpha / abs(alpha - 1), rel=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("decay", [1e-9, 1e-3, 0.1, 5.0])
def test_resolvent(alpha, decay):
    """s = ∫ρ/(h+λ) solves λs(1 + s/α) + s = 1 + s/α... the law's defining equation."""
    law = marchenko_pastur(alpha)
    s = law.rho @ (1 / (law.h + decay))
    assert s * (decay + 1 / (1 + s / alpha)) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("time", [0.1, 10.0, 1e3, 1e6])
def test_hard_edge(time):
    """α = 1: ∫ρ e^{−ht} = e^{−2t}(I₀(2t) + I₁(2t)), a power law at late times."""
    from scipy.special import ive

    law = marchenko_pastur(1.0)
    assert law.rho @ np.exp(-law.h * time) == pytest.approx(
        ive(0, 2 * time) + ive(1, 2 * time), rel=1e-10
    )


def test_shared_nodes_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        marchenko_pastur(1.7).h[:] *= 2
    with pytest.raises(ValueError, match="`alpha` must be a number from 1e-06"):
        marchenko_pastur(0.0)


def test_null_space():
    law = marchenko_pastur(0.25)
    assert (law.h[0], law.rho[0], law.rank) == (0.0, 0.75, 0.25)
    assert law.edge == pytest.approx(1.0)
    assert law.h[1] > law.edge


def test_empirical_spectrum_knows_its_null_space():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 50))
    law = empirical(np.linalg.eigvalsh(X.T @ X / 20))
    assert law.rho[0] == pytest.approx(0.6)
    assert law.h[0] == 0
    assert law.mean == pytest.approx((X**2).sum() / 20 / 50)


@pytest.mark.parametrize(
    "bad",
    [[], [[1.0]], [1.0, np.nan], [-1.0, 2.0], [0.0, 0.0], [1e300], [1e-300], ["a"], "abc", None],
)
def test_bad_eigenvalues(bad):
    with pytest.raises(ValueError, match="`eigenvalues`"):
        empirical(bad)
    if bad is not None:
        with pytest.raises(ValueError, match="`eigenvalues`"):
            mp.Exact(eigenvalues=bad)


@pytest.mark.parametrize("n", [0, 2.5])
def test_nodes_are_counted(n):
    with pytest.raises(ValueError, match=f"`n` must be a whole number from 1 to 100000, got {n}"):
        mp.spectrum.gauss_legendre(n)
