"""SGD on a user's own examples: the same networks, on a training set that is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.data.columns import is_sparse
from manypass.data.dataset import Dataset
from manypass.ensemble import Measured
from manypass.simulation import kernels
from manypass.simulation.examples import Examples, aligned
from manypass.simulation.sample import Flags, Sample


def given_examples(data: Dataset, dtype: Any) -> Examples:
    """Return the training set, laid out for the learning loop; all networks share it."""
    return Examples(np.empty(0), table(data.X, dtype), data.y, float(data.principal.h[-1]))


def table(X: Any, dtype: Any) -> Any:
    """Return a dense table that begins with a cache line."""
    out = aligned(X.shape[0] * X.shape[1], np.dtype(dtype)).reshape(X.shape)
    largest, most = float(abs(X).max()), float(np.finfo(dtype).max)
    if largest > most:
        raise ValueError(
            f"`precision` {np.dtype(dtype)} holds numbers up to {most:.2g}, but the data "
            f"have {largest:.2g}: take precision='float64', or another unit"
        )
    out[:] = X.toarray() if is_sparse(X) else X
    return out


class GivenSample(Sample):
    """One run of SGD on given examples: only the sequence and the noise are its own."""

    test: tuple[Any, Array] | None = None

    def measure(self, J: Array, lost: Flags) -> Measured:
        """Q, F2, Et of weights J (times × N), and F2_test, Eg if there is a test set."""
        classify = self.problem.data.task == "classification"
        J = np.where(lost[:, None], 0.0, J)
        out: Measured = {"Q": np.einsum("tj,tj->t", J, J)}
        sets = [("F2", "Et", self.examples.X, self.examples.targets)]
        sets += [("F2_test", "Eg", *self.test)] if self.test else []
        with np.errstate(over="ignore", invalid="ignore"):
            seen = [X @ J.T.astype(X.dtype) for _, _, X, _ in sets]
        for x in seen:  # what the precision in use cannot hold has diverged
            lost = lost | ~np.isfinite(x).all(axis=0)
        for (square, error, _, targets), x in zip(sets, seen, strict=True):
            out[square], out[error] = kernels.measure(
                self.force,
                tuple(self.problem.rule.parameters.values()),
                x,
                targets,
                classify,
            )
        for name, values in out.items():
            values[lost] = 0.5 if classify and name in ("Eg", "Et") else np.inf
        return out | {"diverged": lost.astype(float)}
