"""How much memory there is, asked before it is taken."""

from __future__ import annotations

import os


def available() -> float:
    """Bytes of memory that are free to take, as far as the system tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = dict(line.split(":") for line in lines)
        return float(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE") / 2


def require(needed: float, remedy: str) -> float:
    """Return the free memory in bytes; refuse what cannot fit, with the number and a remedy."""
    free = available()
    if needed > free:
        raise ValueError(
            f"this needs {needed / 1e9:.3g} GB of memory and {free / 1e9:.3g} GB are free: {remedy}"
        )
    return free
