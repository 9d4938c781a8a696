"""Memory of frames: what one has left, the next shall find."""

from functools import cache
from typing import Final

_LARGE_BYTES: Final = 8 << 20


@cache
def keep_freed_memory() -> None:
    """Let the C library keep free memory at the top of its heap, up to 16 MiB, instead of giving it back each time.

    glibc gives it back whenever it is more than twice the largest block that ever came from the system by itself and
    went back (mallopt(3), M_TRIM_THRESHOLD): 128 kB, where there has been none. Then every large frame costs page
    faults, at one sender of large messages a tenth of all time. So there has been one. Once for a process: the second
    such block would come from the heap. Whoever sets `MALLOC_TRIM_THRESHOLD_` has said how it is to be, and this
    changes nothing; nor does it under another library.
    """
    bytes(_LARGE_BYTES)
