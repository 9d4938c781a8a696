"""Settings in the frames of formations: a count, then of each its name and its value, each preceded by a length byte.

They come last in a body and are left out if there are none. They are sorted by name, each once. What a peer may send is
bounded, and it is printable: the texts are shown in logs and in errors.
"""

import re
from itertools import pairwise
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.settings import Values
from antiphon.wire.names import encode_name
from antiphon.wire.reader import Reader

SETTINGS_MAX: Final = 32
NAME_BYTES_MAX: Final = 32
VALUE_BYTES_MAX: Final = 64
_NAME: Final = re.compile(rb"[a-z][a-z0-9_]*")
_VALUE: Final = re.compile(rb"[!-~]+")


def encode_settings(settings: Values) -> bytes:
    """The bytes of these settings; empty if there are none."""
    if not settings:
        return b""
    texts = [encode_name(text) for setting in settings for text in setting]
    return b"".join((bytes((len(settings),)), *texts))


def read_settings(reader: Reader) -> Values:
    """The settings in the rest of a body."""
    if not reader.left:
        return ()
    (count,) = reader.part(1)
    if not 1 <= count <= SETTINGS_MAX:
        raise ProtocolViolation("body", f"a frame has {count} settings, not 1 to {SETTINGS_MAX}")
    settings = tuple(
        (_read(reader, _NAME, NAME_BYTES_MAX), _read(reader, _VALUE, VALUE_BYTES_MAX)) for _ in range(count)
    )
    if any(one[0] >= other[0] for one, other in pairwise(settings)):
        raise ProtocolViolation("body", "settings are not sorted, or occur twice")
    return settings


def _read(reader: Reader, form: re.Pattern[bytes], bytes_max: int) -> str:
    text = reader.short_text()
    if len(text) > bytes_max or not form.fullmatch(text):
        raise ProtocolViolation("body", f"a setting has a text of {len(text)} bytes that is too long or not plain")
    return text.decode("ascii")
