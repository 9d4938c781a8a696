"""Names on the wire: UTF-8 with a length byte. A run has few and meets them in every frame: both ways are kept."""

from functools import lru_cache

from antiphon.errors import ProtocolViolation


@lru_cache(maxsize=65_536)
def encode_name(name: str) -> bytes:
    """A name with its length before it."""
    encoded = name.encode()
    return bytes((len(encoded),)) + encoded


@lru_cache(maxsize=65_536)
def decode_name(encoded: bytes) -> str:
    """The name in these bytes, without their length."""
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        raise ProtocolViolation("body", "a name is not UTF-8") from error
