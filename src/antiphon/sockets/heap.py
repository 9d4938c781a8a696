"""Keeps freed heap memory in the process, so that the next large frame can reuse it."""

from functools import cache
from typing import Final

_LARGE_BYTES: Final = 8 << 20


@cache
def keep_freed_memory() -> None:
    """Make the C library keep up to 16 MiB of free memory at the top of its heap, instead of returning it each time.

    glibc returns free memory above a threshold: twice the largest block that was mapped by itself and then freed
    (mallopt(3), M_TRIM_THRESHOLD). Without such a block the threshold is 128 kB. Then every large frame costs page
    faults, which take a sender of large messages a tenth of its time. So this function allocates and frees one such
    block. Once per process is enough, and a second one would come from the heap anyway. It has no effect if the user
    sets `MALLOC_TRIM_THRESHOLD_`, or under another C library.
    """
    bytes(_LARGE_BYTES)
