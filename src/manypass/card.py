"""Whether there is a card, what is missing if not, and how much fits on it.

Simulations run kernels compiled by numba-cuda; large products are CuPy's, whose arrays numpy's
functions take as they take its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

DEVICES = ("cpu", "cuda")
INSTALL = "pip install 'manypass[cuda]'"
LARGEST = 16_384  # weights of a network: more do not fit into the registers of one block


def refusal(missing: Callable[[], str | None]) -> str | None:
    """Why nothing can run on a card here, as a line for the user, or None."""
    reason = missing()
    return reason and f"device='cuda' cannot be served: {reason}; device='cpu' needs no card"


@lru_cache(maxsize=1)
def kernels_missing() -> str | None:
    """Say in one line what keeps kernels from running here, or None.

    numba's simulator (NUMBA_ENABLE_CUDASIM=1) needs neither a card nor its packages.
    """
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        return None
    if find_spec("numba_cuda") is None:
        return f"the package numba-cuda is missing: {INSTALL}"
    from numba import cuda
    from numba.cuda.cudadrv.error import CudaSupportError, NvvmSupportError

    try:
        if not len(cuda.gpus):
            return "its driver sees no NVIDIA card on this machine"
        cuda.current_context()
    except CudaSupportError as error:
        return f"there is no working NVIDIA driver on this machine ({_line(error)})"
    except Exception as error:
        return f"the card cannot be used: {type(error).__name__}: {_line(error)}"
    try:
        from numba.cuda.cudadrv import nvvm

        nvvm.NVVM()
    except (NvvmSupportError, OSError, RuntimeError) as error:
        return f"CUDA's compiler is missing ({_line(error)}): {INSTALL}"
    try:
        cuda.jit("void(float32)")(lambda x: None)
    except Exception as error:  # of whatever a version of it does not find in another package
        why = f"{type(error).__name__}: {_line(error)}"
        return f"numba-cuda {version('numba-cuda')} compiles nothing here ({why}): {INSTALL}"
    return None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160].rstrip(" :.")


@lru_cache(maxsize=1)
def arrays_missing() -> str | None:
    """Say in one line what keeps arrays from being on a card here, or None."""
    if find_spec("cupy") is None:
        return f"the package cupy is missing: {INSTALL}"
    try:
        import cupy

        cupy.zeros(1)
    except Exception as error:
        return f"the card cannot be used: {type(error).__name__}: {_line(error)}"
    return None


def place(array: Any, device: str) -> Any:
    """Return a numpy array as it is, or its copy on the card."""
    if device == "cpu":
        return array
    import cupy

    return cupy.asarray(array)


def host(array: Any) -> Any:
    """Return an array as numpy has it, wherever it was."""
    return array.get() if hasattr(array, "get") else array


def beside(array: Any, other: Any) -> Any:
    """Return a numpy array where another one is."""
    return place(array, "cuda" if hasattr(other, "get") else "cpu")


def free_for_arrays() -> float:
    """Bytes of the card that CuPy can take."""
    import cupy

    pool = cupy.get_default_memory_pool()
    return float(cupy.cuda.Device().mem_info[0] + pool.free_bytes())


def networks_at_once(needed: float, shared: float, samples: int) -> int:
    """How many networks of `needed` bytes fit beside what they share; none is refused."""
    free = 0.9 * float(_free()) - shared
    if needed > free:
        raise ValueError(
            f"this needs {(needed + shared) / 1e9:.3g} GB of the card's memory and "
            f"{(free + shared) / 1e9:.3g} GB are free: take a smaller `n`, or device='cpu'"
        )
    # Waves large enough to fill the card, small enough to show progress and to be stopped.
    return int(min(samples, free // needed, max(ENOUGH, min(MOST, WAVE // needed))))


ENOUGH, MOST, WAVE = 2048, 16_384, 3e10  # networks, networks, bytes


def _free() -> Any:
    from numba import cuda

    context = cuda.current_context()
    if hasattr(context, "deallocations"):  # numba gives back what is no longer used only later
        context.deallocations.clear()
    return context.get_memory_info().free
