"""Whether a network has weights enough for its inputs: vμ_max/N ≪ 1."""

from __future__ import annotations

import math
import warnings

from manypass import checks, orders, schedules
from manypass.data.dataset import Dataset
from manypass.problem import Problem

LARGEST = 0.05  # ⟨F²⟩ is 1 to 4 % high at 0.15 and 30 % at 0.3
MOST = 10**7  # weights that are suggested


def refusal(problem: Problem, n: int) -> str | None:
    """Why inputs of a teacher cannot be drawn for so many weights, or None."""
    if isinstance(problem.data, Dataset):
        return None
    try:
        problem.data.inputs.drawn(n)
    except ValueError as error:
        return str(error)
    return None


def tell(problem: Problem, n: int) -> None:
    """Warn if one on-line step moves the direction of the largest eigenvalue by too much."""
    data = problem.data
    if isinstance(data, Dataset) or data.isotropic or problem.mode == "batch":
        return
    v = schedules.largest(orders.equivalent(problem).rate)

    def share(n: int) -> float:
        return v * float(data.inputs.drawn(n)[0].max()) / n

    if share(n) <= LARGEST:
        return
    enough = n
    while share(enough) > LARGEST and enough < MOST:  # the largest eigenvalue grows with N
        enough = min(math.ceil(share(enough) * enough / LARGEST), MOST)
    warnings.warn(
        f"`n` = {n} is small for these inputs: rate·μ_max/n = {share(n):.2g}, and theories of many "
        f"small steps are left above {LARGEST:g}: take `n` = {enough} or more",
        stacklevel=checks.outside(),
    )
