import platform
import resource
import subprocess
import sys

import pytest

from antiphon.sockets.heap import keep_freed_memory

FRAMES = """
import resource
from antiphon.sockets.heap import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        frames = [bytes([7]) * 131_072 for _ in range(16)]
        del frames
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
keep_freed_memory()
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about the allocator of glibc")
def test_the_memory_of_frames_is_not_given_back_and_taken_again() -> None:
    told = subprocess.run([sys.executable, "-c", FRAMES], capture_output=True, text=True, check=True).stdout
    before, after = map(int, told.split())
    pages = 16 * 131_072 // resource.getpagesize()
    assert before > 50 * pages  # else there would be no need for it
    assert after < pages


def test_it_takes_no_memory_itself_however_often_a_member_opens() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(6):
        keep_freed_memory()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 100
