"""Random numbers that are a function of what they are for: Philox 4x32-10 (Salmon et al., SC 2011).

Number `place` of network `network` for `purpose` is the same whatever was drawn before, by whom and
on how many networks at once. Words are held in 64 bits, so that no product overflows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda

M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
WORD, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
SCALE, PAIR = 2.0**-32, 2.0**-64
INPUTS, TEACHER, TARGETS, DRAWS, HEAT, FRESH, FRESH_TARGETS = map(np.uint64, range(7))  # purposes


@cuda.jit(device=True)
def philox(a, b, c, d, low, high):  # type: ignore[no-untyped-def]
    """Four random words from the counter a, b, c, d under the key (low, high)."""
    for _ in range(10):
        p, q = M0 * a, M1 * c
        a, b, c, d = (q >> WORD) ^ b ^ low, q & LOW, (p >> WORD) ^ d ^ high, p & LOW
        low, high = (low + W0) & LOW, (high + W1) & LOW
    return a, b, c, d


@cuda.jit(device=True)
def words(seed, network, purpose, place):  # type: ignore[no-untyped-def]
    """Four random words; all arguments are unsigned."""
    return philox(place & LOW, place >> WORD, network, purpose, seed & LOW, seed >> WORD)


@cuda.jit(device=True)
def below(bound, seed, network, place):  # type: ignore[no-untyped-def]
    """Return a whole number from 0 to bound − 1, each as likely."""
    a, b, _, _ = words(seed, network, DRAWS, place)
    return min(int((a * 2.0**32 + b) * PAIR * bound), bound - 1)


@cuda.jit(device=True, fastmath=True)
def normals(seed, network, purpose, place):  # type: ignore[no-untyped-def]
    """Return four independent normal numbers (Box and Muller)."""
    a, b, c, d = words(seed, network, purpose, place)
    one, two = np.float32((a + 0.5) * SCALE), np.float32((c + 0.5) * SCALE)
    turn, other = np.float32(b * (2 * math.pi * SCALE)), np.float32(d * (2 * math.pi * SCALE))
    r = math.sqrt(np.float32(-2.0) * math.log(one))
    s = math.sqrt(np.float32(-2.0) * math.log(two))
    return r * math.cos(turn), r * math.sin(turn), s * math.cos(other), s * math.sin(other)
