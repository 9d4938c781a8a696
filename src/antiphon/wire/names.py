"""Names on the wire: UTF-8 with a length byte. A run has few and meets them in every frame: both ways are kept."""

from functools import lru_cache

from antiphon.errors import ProtocolViolation
from antiphon.types import GroupId, ProcessId


@lru_cache(maxsize=65_536)
def encode_name(name: str) -> bytes:
    """A name with its length before it."""
    encoded = name.encode()
    return bytes((len(encoded),)) + encoded


@lru_cache(maxsize=65_536)
def encode_names(group: GroupId, sender: ProcessId) -> bytes:
    """The two names that every frame has, one behind the other."""
    return encode_name(group) + encode_name(sender)


@lru_cache(maxsize=65_536)
def decode_name(encoded: bytes) -> str:
    """The name in these bytes, without their length."""
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        raise ProtocolViolation("body", "a name is not UTF-8") from error


@lru_cache(maxsize=65_536)
def decode_names(encoded: bytes) -> tuple[GroupId, ProcessId]:
    """The two names in these bytes, which their two lengths fill exactly."""
    middle = 1 + encoded[0]
    return GroupId(decode_name(encoded[1:middle])), ProcessId(decode_name(encoded[middle + 1 :]))
