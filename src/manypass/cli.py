"""The command line: the verbs of the package, a problem from flags or from a TOML file."""

from __future__ import annotations

import argparse
import errno
import os
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from manypass import __version__
from manypass.commands import (
    run_critical_rate,
    run_explore,
    run_reproduce,
    run_solve,
    run_steady,
    run_sweep,
)
from manypass.files import lost_folder
from manypass.flags import (
    EXAMPLE_PLAN,
    FIELD_FLAGS,
    TEACHER_FLAGS,
    Once,
    fail,
    method_flags,
    number,
    problem_flags,
    seed_flag,
    typed_start,
)
from manypass.questions import run_advise, run_best, run_worth

FLAG_NAMES = {"path": "data"}  # where a flag is called otherwise than its argument
QUOTE = "'"
OF_TEACHER = {field: flag for flag, field in TEACHER_FLAGS.items()}
NAMES = {
    "Exact": "exact",
    "DMFT": "dmft",
    "Simulation": "simulation",
    "MeanForce": "mean-force",
}
VERBS = {"solve": "solve", "steady_state": "steady", "critical_rate": "critical-rate"}
LISTED = r"\['[^'\n]*'(?:, '[^'\n]*')*\]"  # names of columns
WORD = (
    rf"True|False|'[^'\n]*'|\[[-+.,e\d ]*\]|{LISTED}"  # a value that is typed otherwise than said
)
SPOKEN = re.compile(  # how messages name an argument, a start, a method, another thing, a setting
    rf"`(?P<name>\w+)`(?P<whose> of the teacher)?(?: = (?P<given>{WORD})?)?"
    r"|\bStart\((?P<start>R=[^()]*)\)"
    rf"|(?:\bmethod )?\b(?P<method>{'|'.join(NAMES)})\((?P<settings>[^()]*)\)"
    r"(?P<answer>\.\w+\(\))?"
    rf"|\w+\((?:[^()]|\([^()]*\))*\)|\b(?P<setting>\w+)=(?P<value>True|False|'\w*')"
)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and whose flags are never abbreviated."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with code 2; words that are nearly right are asked for."""
        from manypass.checks import meant

        if found := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            message += meant(found[1], re.findall(r"[\w-]+", found[2]))
        fail(message)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read what was typed; what no flag of the command takes is told with who does."""
        found, odd = self.parse_known_args(args, namespace)
        if odd:
            flag = next((word for word in odd if re.match(r"--[\w-]", word)), "")
            asked = flag.lstrip("-").partition("=")[0].replace("-", "_")
            more = self._meant(found.command, asked)
            if all(re.fullmatch(r"[-+.,:e\d]+", word) for word in odd):
                more = "; several numbers are one word, without blanks, such as --times 1,2,3"
            fail(f"unrecognized arguments: {' '.join(odd)}{more}")
        return found

    def _meant(self, command: str, asked: str) -> str:
        """Say which other commands have a flag, or which flag it nearly is."""
        from manypass.checks import meant

        flags = self._flags()
        holders = [f"`manypass {name}`" for name, held in flags.items() if asked in held]
        if asked in flags[command]:
            return ""
        if holders and command == "sweep" and asked in FIELD_FLAGS:
            return f"; {_flag(asked, 'True')} is said by the plan, see `manypass sweep --help`"
        if holders:
            return f"; only {', '.join(holders)} {'have' if holders[1:] else 'has'} it"
        every = set[str]().union(*flags.values())
        found = meant(asked, flags[command]) or meant(asked, every)
        near = re.search(r"['`](\w+)['`]", found)
        if near and near[1] not in flags[command]:
            whose = [f"`manypass {name}`" for name, held in flags.items() if near[1] in held]
            found = found.rstrip("?") + f", of {', '.join(whose)}" + "?" * found.endswith("?")
        named = argparse.Namespace(**dict.fromkeys(every))
        return as_flags(re.sub(r"'(\w+)'", r"`\1`", found), named)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help; argparse says nothing of a disk that is full."""
        print(message, end="", file=file or sys.stderr, flush=True)

    def _flags(self) -> dict[str, set[str]]:
        """Return the names of the flags of every command."""
        choices = [action.choices for action in self._actions]
        parsers = {k: one for held in choices if isinstance(held, dict) for k, one in held.items()}
        typed = {
            k: [n for a in one._actions for n in a.option_strings] for k, one in parsers.items()
        }
        return {
            command: {name[2:].replace("-", "_") for name in names if name.startswith("--")}
            for command, names in typed.items()
        }


def _joined(argv: Sequence[str]) -> list[str]:
    """Join a flag and values that begin with a minus: argparse takes -0.5,1 for another flag."""
    words: list[str] = []
    for word in argv:
        if re.match(r"-[\d.]", word) and words and re.fullmatch(r"--[\w-]+", words[-1]):
            words[-1] += f"={word}"
        elif re.fullmatch(r"--[\w-]+=--", word):  # argparse would make an empty list of it
            fail(f"argument {word[:-3]}: expected one argument, got '--'")
        else:
            words.append(word)
    return words


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command."""
    arguments = argparse.Namespace()
    try:
        arguments = parser().parse_args(_joined(sys.argv[1:] if argv is None else argv))
        with warnings.catch_warnings():
            warnings.filterwarnings("default", category=UserWarning)  # lines, whatever the filters
            warnings.showwarning = partial(_say, warnings.showwarning, arguments)
            arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `manypass solve … | head`: nobody reads the rest
        _print_no_more()
    except MemoryError as error:
        fail(f"out of memory: {error}")
    except OSError as error:
        place = error.filename
        if isinstance(error, FileNotFoundError) and (lost := lost_folder(place or "")):
            fail(lost)
        if error.errno == errno.ENOSPC and place is None:  # `manypass solve > file`, on a full disk
            _print_no_more()  # Python would try again at exit
            place = "standard output"
        fail(as_flags(f"{place}: {error.strerror}" if place else str(error), arguments))
    except ValueError as error:
        fail(as_flags(str(error), arguments))


def _say(usual: Any, arguments: Any, message: Any, category: Any, *place: Any) -> None:
    """Print what the package warns of on one line of stderr, without a place in its source."""
    if not issubclass(category, UserWarning):
        usual(message, category, *place)
    else:
        print(f"manypass: {as_flags(str(message), arguments)}", file=sys.stderr)


def _print_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_flags(message: str, arguments: argparse.Namespace) -> str:
    """Name arguments as they are typed, unless they stand in the file.

    `rate` becomes --rate, `hidden` of the teacher --teacher-hidden, `mode` = 'batch' --mode batch,
    intercept=True --intercept, Start(R=0.5, Q=1.0) --start 0.5,1 and DMFT(dt=0.1) --method dmft
    --dt 0.1; other calls, such as Adatron(kappa=1.0), are names of things.
    """
    from_file = getattr(arguments, "problem", None) is not None
    flags = {*vars(arguments)} - {"problem", "figures", "run", "command"}

    def replaced(found: re.Match[str]) -> str:
        if found["start"] and "start" in flags:
            return typed_start(found["start"]) or found[0]
        if found["method"]:
            before, here = message[: found.start()], getattr(arguments, "command", "")
            elsewhere = "method" not in flags
            if elsewhere and (not here or "method " not in before + found[0]):
                return found[0]
            settings = re.findall(r"(\w+)=([^,\s]+)", found["settings"])
            answer = (found["answer"] or "").strip(".()").replace("_", " ")
            words = [f"--method {NAMES[found['method']]}", *(_flag(*s) for s in settings)]
            if here == "sweep":
                table = {"name": f'"{NAMES[found["method"]]}"'} | dict(settings)
                return f"method = {{ {', '.join(f'{k} = {v}' for k, v in table.items())} }}"
            if elsewhere or (here != "solve" and "come from " in before):
                return f"`manypass solve {' '.join(words)}`"
            return f"the {answer} of {' '.join(words)}" if answer else " ".join(words)
        name = found["name"] or found["setting"] or ""
        if found["name"] in VERBS and name not in flags:
            return f"`manypass {VERBS[name]}`"
        name = OF_TEACHER.get(name, name) if found["whose"] else name
        named = name in FIELD_FLAGS and getattr(arguments, name, None) is None
        if name not in flags or (from_file and named):  # what a file may say is called as it does
            return found[0]
        more = " " if found[0].endswith(" = ") else ""
        return _flag(name, found["given"] or found["value"] or "True") + more

    return re.sub(SPOKEN, replaced, message)


def _flag(name: str, value: str) -> str:
    """Return a flag and its value as they are typed."""
    as_typed = f"--{FLAG_NAMES.get(name) or name.replace('_', '-')}"
    if value in ("True", "False"):
        return as_typed if value == "True" else f"no {as_typed}"
    if value.startswith("['"):
        names = ",".join(re.findall("'([^']*)'", value))
        return f"{as_typed} {shlex.quote(names)}"
    if value.startswith("["):
        return f"{as_typed} {value.strip('[]').replace(' ', '')}"
    return f"{as_typed} {shlex.quote(value.strip(QUOTE))}"


def parser() -> Parser:
    """All commands and flags."""
    top = Parser(
        prog="manypass",
        description="Learning curves of on-line learning that passes many times over "
        "a finite training set.",
        epilog="Example: manypass solve --rule adaline --alpha 1.2 --rate 1.9 --decay 0.8",
    )
    top.add_argument("--version", action="version", version=f"manypass {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Any, text: str, **options: Any) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, **options)
        made.set_defaults(run=run, command=name)
        return made

    given = [problem_flags()]
    solve = command("solve", run_solve, "Learning curves against time.", parents=given)
    solve.add_argument(
        "--times",
        action=Once,
        help="first:last:count, or t1,t2,... (default: 0:8:161, or five passes of --data)",
    )
    method_flags(solve, "auto", "exact", "dmft", "simulation")
    solve.add_argument("--two-time", action="store_true", help="also C(t,s) and G(t,s), with --out")
    solve.add_argument("--out", help="write the numbers as .nc, .csv or .json")
    solve.add_argument("--plot", help="draw the curves as .png, .pdf or .svg")
    solve.add_argument(
        "--show-rate",
        action=argparse.BooleanOptionalAction,
        help="with --plot: the rate against time, under the curves (default: if it changes)",
    )

    steady = command("steady", run_steady, "R, Q, F2, Eg in the steady state.", parents=given)
    steady.add_argument(
        "--window",
        type=float,
        default=0.0,
        help="averaging time of the weights (default: 0): R, Q, Eg and F2_test are then of "
        "averaged weights, F2 and Et still of the present ones",
    )
    method_flags(steady, "auto", "exact", "dmft", "mean-force", "simulation")
    steady.add_argument("--out", help="write the numbers as .nc, .csv or .json")

    text = "The rate v_c above which learning diverges, and the slow mode if --rate is given."
    limit = command("critical-rate", run_critical_rate, text, parents=given)
    limit.add_argument(
        "--device", default="cpu", help="with --data: cpu (default) or cuda, an NVIDIA card"
    )

    text = "The rate, decay, window, stopping time or schedule that makes an error least."
    least = command("best", run_best, text, parents=given)
    least.add_argument(
        "--over",
        action="append",
        required=True,
        metavar="FIELD[=LOW:HIGH]",
        help="what is varied: rate, decay, temperature, noise, alpha, window (averaging time), "
        "time (when to stop) or schedule (ways to change the rate); repeated with bounds: together",
    )
    least.add_argument(
        "--objective", default="Eg", help="what should be small: Eg (default), Et, F2, Q, F2_test"
    )
    least.add_argument(
        "--at", type=number, default="steady", help="when: a time, or steady (default)"
    )
    least.add_argument(
        "--window", type=float, default=0.0, help="averaging time in the steady state (default: 0)"
    )
    method_flags(least, "auto", "exact", "dmft", "mean-force", "simulation")
    least.add_argument("--out", help="write the numbers as .nc, .csv or .json")

    text = "Many problems: a grid over any fields, from a plan in TOML; goes on where it was."
    many = command(
        "sweep",
        run_sweep,
        text,
        epilog=f"a plan:\n{EXAMPLE_PLAN}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    many.add_argument("plan", help="TOML file: a problem, and a table [sweep]")
    many.add_argument("--out", default="sweep", help="folder to keep points in (default: sweep)")
    who = many.add_mutually_exclusive_group()
    who.add_argument("--workers", type=int, help="local processes (default: one per core)")
    who.add_argument("--cluster", metavar="tcp://HOST:PORT", help="address of a Dask scheduler")
    who.add_argument(
        "--slurm", type=int, metavar="JOBS", help="Slurm jobs, with the plan's table [slurm]"
    )

    text = "What repeated data are worth: fresh examples that give the error of several passes."
    many = command("worth", run_worth, text, parents=given)
    many.add_argument(
        "--passes",
        action=Once,
        default="1,2,4,8,16,32,64",
        help="numbers of passes (default: %(default)s)",
    )
    many.add_argument(
        "--tuned", action="store_true", help="each at its own best rate and decay: some minutes"
    )
    many.add_argument("--out", help="write the numbers as .nc, .csv or .json")
    many.add_argument("--plot", metavar="FILE", help="draw them: .png, .pdf or .svg")

    text = "The best rate, decay, passes and averaging window for your own data."
    advice = command("advise", run_advise, text, parents=given)
    advice.add_argument("--passes", type=int, default=20, help="the most epochs (default: 20)")
    advice.add_argument(
        "--holdout",
        type=float,
        help="share to test on without --test (default: 0.25)",
    )
    advice.add_argument(
        "--objective",
        default="F2_test",
        help="what to minimise: F2_test, the mean squared error (default), or Eg, the error rate",
    )
    seed_flag(advice, 0, "of the share held out (default: 0); none draws one")
    advice.add_argument(
        "--schedules", action="store_true", help="compare rates that change with time too"
    )
    advice.add_argument("--out", help="write the numbers as .nc, .csv or .json")

    text = (
        "The paper's figures 1 to 4, 5: Adatron, 6: orders, 7: repeated data, 8: two layers; "
        "by default all."
    )
    again = command("reproduce", run_reproduce, text)
    again.add_argument("figures", nargs="*", type=int, help="figure numbers")
    again.add_argument("--quick", action="store_true", help="a coarse version, in seconds")
    seed_flag(again, 0, "(default: 0); none draws one")
    again.add_argument("--out", default="figures", help="folder to write to (default: %(default)s)")

    page = command("explore", run_explore, "A page on this machine: learning curves to play with.")
    page.add_argument("--port", type=int, help="by default 8642 or the next free one")
    page.add_argument("--no-browser", action="store_true", help="only print the address")
    return top
