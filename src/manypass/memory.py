"""How much memory there is, asked before it is taken."""

from __future__ import annotations

import math
import os


def available() -> float:
    """Bytes of memory that are free to take, as far as the system tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = dict(line.split(":") for line in lines)
        return float(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE") / 2


def require(
    needed: float, remedy: str, limit: float = math.inf, free: float | None = None
) -> float:
    """Return the free memory in bytes, up to a limit; refuse what cannot fit, with the number.

    `free` is that of another place than the machine's own memory.
    """
    free = min(available() if free is None else free, limit)
    if needed > free:
        allowed = "allowed" if free == limit else "free"
        raise ValueError(
            f"this needs {needed / 1e9:.3g} GB of memory and {free / 1e9:.3g} GB are {allowed}: "
            f"{remedy}"
        )
    return free
