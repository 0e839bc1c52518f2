"""manypass: learning curves of on-line learning that passes many times over a finite training set.

One problem, one verb, several methods, one kind of result::

    problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    theory = mp.solve(problem, times)
    mp.plot.curves(theory)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Names load on first use, so that `manypass --help` need not wait for xarray.
_HOMES = {
    "data.advice": ("advise",),
    "data.dataset": ("Dataset",),
    "data.reading": ("read_dataset",),
    "problem": ("Problem", "Teacher"),
    "rules": ("Adaline", "Adatron", "Hebbian", "Huber", "Logistic", "Perceptron", "Rule"),
    "cavity.activations": ("activation_density", "activations"),
    "cavity.method": ("DMFT",),
    "cavity.settling": ("NotSettledError",),
    "exact.method": ("Exact",),
    "layers.plateau": ("specialization",),
    "layers.rule": ("Committee",),
    "inputs": ("Blocks", "Eigenvalues", "Isotropic", "PowerLaw", "inputs_of"),
    "exact.mean_force": ("MeanForce",),
    "exact.two_time": ("example_response", "force_autocorrelation"),
    "start": ("Start",),
    "simulation.method": ("Simulation",),
    "simulation.cavity": ("cavity_experiment",),
    "sweeps.best": ("best",),
    "sweeps.grid": ("Grid",),
    "sweeps.run": ("sweep",),
    "verbs": ("critical_rate", "slow_mode", "solve", "steady_state"),
    "worth": ("effective_data",),
    "results": ("load", "problem_of", "save"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("inputs", "plot", "problem", "results", "rules", "schedules", "spectrum")

__all__ = [*_HOME, *_MODULES]

if TYPE_CHECKING:
    from manypass import inputs as inputs
    from manypass import plot as plot
    from manypass import problem as problem
    from manypass import results as results
    from manypass import rules as rules
    from manypass import schedules as schedules
    from manypass import spectrum as spectrum
    from manypass.cavity.activations import activation_density as activation_density
    from manypass.cavity.activations import activations as activations
    from manypass.cavity.method import DMFT as DMFT
    from manypass.cavity.settling import NotSettledError as NotSettledError
    from manypass.data.advice import advise as advise
    from manypass.data.dataset import Dataset as Dataset
    from manypass.data.reading import read_dataset as read_dataset
    from manypass.exact.mean_force import MeanForce as MeanForce
    from manypass.exact.method import Exact as Exact
    from manypass.exact.two_time import example_response as example_response
    from manypass.exact.two_time import force_autocorrelation as force_autocorrelation
    from manypass.inputs import Blocks as Blocks
    from manypass.inputs import Eigenvalues as Eigenvalues
    from manypass.inputs import Isotropic as Isotropic
    from manypass.inputs import PowerLaw as PowerLaw
    from manypass.inputs import inputs_of as inputs_of
    from manypass.layers.plateau import specialization as specialization
    from manypass.layers.rule import Committee as Committee
    from manypass.problem import Problem as Problem
    from manypass.problem import Teacher as Teacher
    from manypass.results import load as load
    from manypass.results import problem_of as problem_of
    from manypass.results import save as save
    from manypass.rules import Adaline as Adaline
    from manypass.rules import Adatron as Adatron
    from manypass.rules import Hebbian as Hebbian
    from manypass.rules import Huber as Huber
    from manypass.rules import Logistic as Logistic
    from manypass.rules import Perceptron as Perceptron
    from manypass.rules import Rule as Rule
    from manypass.simulation.cavity import cavity_experiment as cavity_experiment
    from manypass.simulation.method import Simulation as Simulation
    from manypass.start import Start as Start
    from manypass.sweeps.best import best as best
    from manypass.sweeps.grid import Grid as Grid
    from manypass.sweeps.run import sweep as sweep
    from manypass.verbs import critical_rate as critical_rate
    from manypass.verbs import slow_mode as slow_mode
    from manypass.verbs import solve as solve
    from manypass.verbs import steady_state as steady_state
    from manypass.worth import effective_data as effective_data


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"manypass.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"manypass.{name}")
    raise AttributeError(f"module 'manypass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
