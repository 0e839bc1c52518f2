"""What a population remembers: blocks of K normals, and cells that become one."""

import math

import numpy as np
import pytest

from manypass.cavity.blocks import (
    inverse_root,
    orthonormal,
    quotient,
    root_of,
    trace,
    turn_of,
    turned,
)
from manypass.cavity.past import Past
from manypass.cavity.weights import Weights

SIZE = 400


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("K", [1, 2, 3])
def test_blocks_of_any_size(K):
    """One number needs no library, and gives what it would."""
    L = numbers(K, K) + 2 * np.eye(K)
    square = L @ L.T
    np.testing.assert_allclose(root_of(square, 0.0) @ root_of(square, 0.0), square)
    inverse = inverse_root(square, 0.0)
    np.testing.assert_allclose(inverse @ square @ inverse, np.eye(K), atol=1e-12)
    assert not inverse_root(square, 1e3).any()
    np.testing.assert_allclose(root_of(0 * square, 4.0), 2 * np.eye(K))
    np.testing.assert_allclose(quotient(L, L, 0.0), np.eye(K), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(quotient(L, 0 * L, 3.0), 3 * np.eye(K))
    share = np.abs(numbers(SIZE, 1, seed=7)).astype(np.float32)
    z = orthonormal(numbers(SIZE, K).astype(np.float32), share)
    np.testing.assert_allclose(z.T @ (share * z) / SIZE, np.eye(K), atol=1e-5)
    assert trace(square) == pytest.approx(np.trace(square))


@pytest.mark.parametrize("seed", range(5))
def test_what_one_unit_gives_up_is_what_any_would(seed):
    A, L = numbers(1, 3, seed=seed), np.tril(numbers(3, 3, seed=seed + 100))
    L[np.diag_indices(3)] = np.abs(np.diag(L)) + 0.1
    push, after = L[:1] + L[1:2], L[2:]
    np.testing.assert_allclose(turn_of(A, push, after, True), turned(A, push, after), atol=1e-9)


@pytest.mark.parametrize("K", [1, 2])
def test_whatever_the_pushes_h_is_not_given_up(K):
    """Where the rate rises and falls, pushes of neighbours differ by orders of magnitude."""
    lost = 0
    for seed in range(200):
        A, L = numbers(K, 3 * K, seed=seed), np.tril(numbers(3 * K, 3 * K, seed=seed + 1000))
        sizes = 10.0 ** np.random.default_rng(seed).uniform(-3, 0, 3)
        L *= np.repeat(sizes, K)[:, None]
        for k in range(3):
            own = slice(K * k, K * k + K)
            L[own, own] = root_of(L[own, own] @ L[own, own].T, 1e-12)
        push, after = L[:K] + L[K : 2 * K], L[2 * K :]
        turn = turn_of(A, push, after, True)
        np.testing.assert_allclose(turn.T @ turn, np.eye(2 * K), atol=1e-9)
        np.testing.assert_allclose(A @ turn @ turn.T, A, atol=1e-6)
        lost += not np.allclose((push + after) @ turn @ turn.T, push + after, atol=1e-6)
    assert lost  # there are such as cannot keep all three


def filled(K, epochs=False, per=4.0, steps=40):
    """A past with pushes and forces of its own in every cell, and A as it is in h."""
    known = np.column_stack([np.ones(SIZE), numbers(SIZE, K)])
    past = Past(Weights(K, 1), 1.5, known, per, 0, epochs)
    for i in range(steps):
        z = numbers(K, SIZE, seed=i).astype(np.float32)
        past.append(z, 0.1 * numbers(SIZE, K, seed=i + 1000), 0.1 * i, 0.1 * (i + 1))
        n, own = past.n, past.newest
        past.L[own, : n - K] = 0.01 * np.tile(numbers(K, K), past.count - 1)
        past.L[own, own] = 0.3 * np.eye(K)
        push = past.L[own, :n]
        drive = np.zeros((K, 1 + n))
        past.rows[0, :, :n] = past.weights.advance((0.1, 0.2, 0.0), drive, drive, push, 0.0)
        e = past.e[:, :n]
        S = (e[:, own].T @ e).astype(float) / SIZE
        past.complete(*past.row(S, 0.0), np.zeros((K, n)))
        yield past, 0.1 * (i + 1)


@pytest.mark.parametrize("K", [1, 2])
def test_uniting_cells_changes_neither_h_nor_its_law(K):
    united = False
    for past, now in filled(K):
        before, n = past.count, past.n
        h = past.z[:, :n] @ past.rows[0, :, :n].T
        past.merge(now)
        n = past.n
        united |= past.count < before
        np.testing.assert_allclose(past.z[:, :n] @ past.rows[0, :, :n].T, h, atol=2e-5)
        np.testing.assert_allclose(past.z[:, :n].T @ past.z[:, :n] / SIZE, np.eye(n), atol=1e-4)
        # What comes back of own forces is what h shows of pushes, in old cells as in new ones.
        own = past.own(n) * math.sqrt(past.alpha)
        np.testing.assert_allclose(own, past.rows[0, :, :n], atol=1e-12)
    assert united
    assert past.count < 30


def test_cells_of_a_fast_past_stay_short():
    """At a rate that falls, a cell is short in what was learned in it, not in time alone."""

    def left(v):
        past = Past(Weights(1, 1), 1.0, np.column_stack([np.ones(SIZE), numbers(SIZE)]), 4.0, 0)
        for i in range(60):
            z = numbers(1, SIZE, seed=i).astype(np.float32)
            past.append(z, 0.0, 0.1 * i, 0.1 * (i + 1), v(i))
            past.L[i and past.n - 1, past.n - 1] = 0.1
            past.merge(0.1 * (i + 1))
        end, begin, learned = past.end, past.begin, past.learned[: past.count]
        np.testing.assert_allclose(learned.sum(), 0.1 * sum(map(v, range(60))))
        np.testing.assert_allclose(begin[1 : past.count], end[: past.count - 1])
        since = np.append(np.cumsum(learned[::-1])[::-1][1:], 0.0)
        alone = learned > 0.1 * max(map(v, range(60))) * (1 + 1e-9)  # made of more than one
        assert (learned[alone] <= since[alone] / 4 * (1 + 1e-6)).all()
        return past.count

    assert left(lambda i: 0.9**i) > left(lambda i: 1.0)


def test_forces_of_an_epoch_wait_for_its_end():
    """An example is as if its turn were still to come, until the epoch ends."""
    for past, _ in filled(2, epochs=True, steps=6):
        assert past.count - past.first <= 6
    n = past.n
    where, forces = np.arange(SIZE) % 6, numbers(SIZE, 2)
    sources, e = past.rows[past.sources, :, :n].copy(), past.e[:, :n].copy()
    past.turn(where, forces, 0.6)
    expected = e + np.einsum("sk,skn->sn", forces, sources[where])
    np.testing.assert_allclose(past.e[:, :n], expected, atol=1e-5)
    assert not past.rows[past.sources].any()
    assert past.first == past.count
