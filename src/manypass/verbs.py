"""The verbs: `solve` a problem, find its `steady_state`, and where learning diverges."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from manypass import card, checks, forces, orders, results, schedules, spectrum
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import Progress
from manypass.exact import steady
from manypass.exact.method import Exact
from manypass.problem import Problem, Teacher, checked
from manypass.rules import Adaline, Hebbian, Rule
from manypass.schedules import Schedule

if TYPE_CHECKING:
    import xarray as xr

# Methods by the names they have in files and on the command line; each is imported when needed.
METHODS = {
    "exact": "Exact",
    "dmft": "DMFT",
    "simulation": "Simulation",
    "mean-force": "MeanForce",
}


class Method(Protocol):
    """What a method offers; its settings are its fields."""

    def refusal(self, problem: Problem) -> str | None:
        """Why this method cannot serve the problem, or None if it can."""

    def solve(
        self, problem: Problem, t: Array, *, two_time: bool, progress: Progress
    ) -> xr.Dataset:
        """Return curves at times t."""

    def steady_state(self, problem: Problem, *, window: float) -> xr.Dataset:
        """Return values for t → ∞."""


def solve(
    problem: Problem,
    times: Any,
    method: Method | str = "auto",
    *,
    two_time: bool = False,
    progress: Progress = False,
) -> xr.Dataset:
    """Learning curves of a problem.

    Parameters
    ----------
    problem : Problem
    times : array_like
        Strictly increasing times; one unit is N learning steps, a pass over the data takes α.
    method : Method or str
        `Exact()` for Adaline and Hebbian, `DMFT(...)` for every force,
        `Simulation(...)` for every rule; or with their default settings "exact", "dmft",
        "simulation", "mean-force"; "auto" takes the exact theory where there is one, else DMFT,
        and a simulation for given data or an order of the examples that neither serves.
    two_time : bool
        Also compute C(t,s) and G(t,s); simulations measure G only with `response=True`.
    progress : bool or callable
        Show how far a long run is. A function is called with the result so far, a dataset,
        whenever a simulated network or a population of DMFT has been added to it.

    Returns
    -------
    xarray.Dataset
        R, Q, F2, Eg, Et on coordinate t, with standard errors `*_se` where anything is sampled;
        for the one Et that has to be asked for see `Exact`. Above the critical rate the growing
        transient, then inf; where v_c is known at once, the attribute `diverges` says so.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> mp.solve(problem, [0.5, 1, 2]).F2.values.round(6)
    array([0.895006, 0.76156 , 0.702242])
    """
    chosen = _method(problem, method)
    t = checks.increasing("times", times, results.LATEST)
    two_time = checks.flag("two_time", two_time)
    asked = schedules.up_to(_asked(problem, chosen), float(t[-1]))
    told = checks.progress(progress)
    with orders.as_given(problem, _asked(problem, chosen)):
        found = chosen.solve(asked, t, two_time=two_time, progress=told)
    found = found if asked is problem else found.assign_attrs(results.attributes(problem))
    at_once = problem.sequence == "replacement" and not problem.batch_share  # v_c has a closed form
    if isinstance(chosen, Exact) and isinstance(problem.data, Teacher) and at_once:
        from manypass import growth  # which asks for v_c

        if line := growth.told(problem, found):
            found.attrs["diverges"] = line
    return found


def steady_state(
    problem: Problem, method: Method | str = "auto", *, window: float = 0.0
) -> xr.Dataset:
    """R, Q, F2 and Eg for t → ∞; with a `window` τ, R, Q and Eg of the weights averaged over it.

    So is F2_test of a `Dataset`; F2 and Et stay those of the last weights, and so do values at the
    end of an epoch (`*_end`). `long_name` of each says which.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> round(float(mp.steady_state(problem).Eg), 6)
    0.338376
    >>> round(float(mp.steady_state(problem, window=100).Eg), 3)  # nearly batch learning
    0.241
    """
    window = checks.number("window", window, 0, results.LATEST)
    if (moving := orders.schedule(checked(problem))) is not None:
        raise ValueError(f"no steady state of {moving}: give the constant value where it ends")
    chosen = _method(problem, method, "steady_state")
    asked = _asked(problem, chosen)
    with orders.as_given(problem, asked):
        found = chosen.steady_state(asked, window=window)
    return found if asked is problem else found.assign_attrs(results.attributes(problem))


def critical_rate(problem: Problem, *, eigenvalues: Any = None, device: str = "cpu") -> float:
    """v_c, the learning rate above which ⟨|J|²⟩ diverges; see `exact.steady.critical_rate`.

    Forces that stay bounded never let it diverge: inf, or with batches and given examples, whose
    steps are finite, the rate at which the decay alone does (`orders.overshoot`). Of other
    nonlinear rules, such as Adatron, v_c is where the steady state of the mean-field theory ends;
    `DMFT(...).critical_rate(problem)` returns it with its standard error.

    For a `Dataset`, with a linear rule, it is the mean-square one, v_c = N/ϱ
    (`data.critical.critical_step`), and says this: above it the *average* over runs of |J|² and of
    every mean-square error grows without bound. Rare runs that draw examples of large norm in a
    row drive it; a single run may look fine for a long while, and its typical behaviour may even
    improve. Below it the average settles. It depends on the decay and on every example, not on
    the spectrum alone. Its products over all examples can be computed on a card, `device="cuda"`.

    v_c is a limit to constant rates and does not depend on the problem's own. A rate that is a
    schedule may be above it for a while: a warning tells how far it reaches.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> round(mp.critical_rate(problem), 6)
    3.09178
    """
    checks.choice("device", device, card.DEVICES)
    if isinstance(rate := checked(problem).rate, Schedule):
        constant = problem.replace(rate=1.0)
        limit = critical_rate(constant, eigenvalues=eigenvalues, device=device)
        warnings.warn(
            f"v_c is a limit to constant rates: `rate` = {rate} reaches v = {rate.largest:.4g}, "
            f"v/v_c = {rate.largest / limit:.4g}",
            stacklevel=2,
        )
        return limit
    if problem.layered:
        raise ValueError(orders.refusal(problem, "critical_rate"))
    if device == "cuda" or isinstance(problem.data, Dataset):
        from manypass.data import solution  # a Teacher needs nothing of it

        if device == "cuda" and (reason := solution.refused_by_card(problem)):
            raise ValueError(reason)
        if eigenvalues is not None:
            raise ValueError("`eigenvalues` do not determine the critical rate of a Dataset")
        return solution.critical_rate(problem, device=device)
    plain = orders.equivalent(problem)
    scale = problem.batch_size * (1 - problem.momentum) if plain is not problem else 1.0
    if isinstance(problem.rule, Adaline | Hebbian):
        plain = orders.require(problem.replace(rate=1.0), "critical_rate")
        return scale * steady.critical_rate(plain, _law(eigenvalues))
    if eigenvalues is not None:
        raise ValueError(f"`eigenvalues` are of no use to `rule` {problem.rule!r}: not linear")
    from manypass.cavity.method import DMFT

    forces.check_works(problem.rule)
    return scale * DMFT().critical_rate(plain)[0]


def slow_mode(problem: Problem, *, eigenvalues: Any = None) -> float:
    """λ_σ, the rate of the collective mode, zero at v_c; see `exact.steady.slow_mode`.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=3.0, decay=0.8)
    >>> round(mp.slow_mode(problem), 6), mp.slow_mode(problem.replace(rate=3.2)) < 0
    (0.449219, True)
    """
    plain = orders.require(checked(problem), "slow_mode")
    return steady.slow_mode(plain, _law(eigenvalues))


def _law(eigenvalues: Any) -> spectrum.Spectrum | None:
    return None if eigenvalues is None else spectrum.empirical(eigenvalues)


def named(method: Any) -> Any:
    """Return the method itself, that of a name with its default settings, or "auto" as it is."""
    if isinstance(method, str) and method in METHODS:
        return getattr(import_module("manypass"), METHODS[method])()
    offered = all(hasattr(method, name) for name in ("refusal", "solve", "steady_state"))
    automatic = isinstance(method, str) and method == "auto"
    if not automatic and (not offered or isinstance(method, type)):
        names = ", ".join(map(repr, ("auto", *METHODS)))
        raise ValueError(
            f"`method` must be {names} or a method such as Exact(), got {checks.shown(method)}"
            f"{checks.meant(method, METHODS)}"
        )
    return method


def automatic(problem: Problem, asked: str = "solve") -> str:
    """Return the name of the method that "auto" stands for; `asked` is the verb."""
    if not orders.approximate(problem) and _refusal(Exact(), problem, asked) is None:
        return "exact"
    who = "DMFT" if asked == "solve" else f"DMFT.{asked}"
    random = not isinstance(problem.data, Dataset)  # examples, of which alone DMFT is a theory
    return "dmft" if random and orders.refusal(problem, who) is None else "simulation"


def resolve(problem: Problem, method: Method | str, asked: str = "solve") -> Method:
    """Return the method itself, or the one that a name or "auto" stands for."""
    if isinstance(method, str) and method == "auto":
        method = automatic(problem, asked)
    return named(method)  # type: ignore[no-any-return]


def _refusal(method: Method, problem: Problem, asked: str) -> str | None:
    refuse = method.refusal
    if asked == "steady_state":
        refuse = getattr(method, "steady_refusal", refuse)
    return refuse(problem)


def _asked(problem: Problem, method: Method) -> Problem:
    """Return what a method is asked: a theory the plain problem that the given one amounts to."""
    return problem if getattr(method, "finite", False) else orders.equivalent(problem)


def _method(problem: Problem, method: Method | str, asked: str = "solve") -> Method:
    rule, values = checked(problem).rule, tuple(problem.rule.parameters.values())
    own = type(rule) is Rule and (problem.start is None or problem.start.at_zero)
    if own and (wrong := forces.unready(rule.force_function, values)):
        raise ValueError(
            f"`rule` {rule!r}: its force {wrong}, where learning from J = 0 begins: make it finite "
            f"there, or give the problem a `start` elsewhere"
        )
    if type(rule) is Rule:
        forces.check_works(rule)
    chosen = resolve(problem, method, asked)
    reason = _refusal(chosen, problem, asked)
    if reason:
        raise ValueError(reason)
    return chosen
