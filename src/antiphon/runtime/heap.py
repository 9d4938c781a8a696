"""Memory of frames: what one has left, the next shall find."""

from typing import Final

_LARGE_BYTES: Final = 8 << 20


def keep_freed_memory() -> None:
    """Let the C library keep up to 16 MiB that are free, instead of giving them back to the system time and again.

    glibc gives back the top of its heap whenever that is more than twice the largest block that it ever got from the
    system by itself and gave back (mallopt(3), M_TRIM_THRESHOLD): 256 kB, where there has been none. Then every frame
    of 256 kB costs page faults, at one sender of large messages a tenth of all time. So there has been one. Whoever
    sets `MALLOC_TRIM_THRESHOLD_` has said how it is to be, and this changes nothing; nor does it under another library.
    """
    bytes(_LARGE_BYTES)
