"""A stand-in for CuPy: numpy's functions take its arrays, but never turn them into their own."""

import sys
import types

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


def inside(value):
    """Return numpy arrays for ours, at any depth of the arguments."""
    if isinstance(value, Array):
        return value.hidden
    if isinstance(value, tuple | list):
        return type(value)(inside(v) for v in value)
    return value


def outside(value):
    """Return ours for numpy arrays; numbers that a reduction gives stay arrays, as CuPy's do."""
    if isinstance(value, np.ndarray | np.generic):
        return Array(np.asarray(value))
    if isinstance(value, tuple):
        return type(value)(outside(v) for v in value) if type(value) is tuple else value
    return value


class Array(NDArrayOperatorsMixin):
    def __init__(self, hidden):
        self.hidden = hidden

    def get(self):
        return self.hidden.copy()

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        for value in inputs:
            if isinstance(value, np.ndarray) and value.ndim:
                raise TypeError(f"Unsupported type {type(value)}")
        settings = {key: inside(value) for key, value in settings.items()}
        return outside(getattr(ufunc, method)(*inside(inputs), **settings))

    def __array_function__(self, function, _, arguments, settings):
        found = function(*inside(arguments), **{k: inside(v) for k, v in settings.items()})
        if hasattr(found, "_fields"):  # eigh
            return tuple(Array(part) for part in found)
        return outside(found)

    def __getattr__(self, name):
        found = getattr(self.hidden, name)
        if callable(found):
            return lambda *a, **k: outside(
                found(*inside(a), **{n: inside(v) for n, v in k.items()})
            )
        return outside(found)

    def __getitem__(self, key):
        return outside(self.hidden[inside(key)])

    def __setitem__(self, key, value):
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError(f"Unsupported type {type(value)}")
        self.hidden[inside(key)] = inside(value)

    def __iter__(self):
        return (outside(row) for row in self.hidden)

    def __len__(self):
        return len(self.hidden)

    def __float__(self):
        return float(self.hidden)

    def __bool__(self):
        return bool(self.hidden)

    def __int__(self):
        return int(self.hidden)


def install(monkeypatch):
    """Make `import cupy` find this."""
    module = types.ModuleType("cupy")
    module.asarray = lambda a: a if isinstance(a, Array) else Array(np.array(a))
    module.zeros = lambda n: Array(np.zeros(n))
    module.get_default_memory_pool = lambda: types.SimpleNamespace(free_bytes=lambda: 0)
    device = types.SimpleNamespace(mem_info=(10**10, 10**10))
    module.cuda = types.SimpleNamespace(Device=lambda: device)
    monkeypatch.setitem(sys.modules, "cupy", module)
