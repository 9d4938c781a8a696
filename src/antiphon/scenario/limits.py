"""Limits that hold for every scenario."""

from typing import Final

PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
MEMBERS_MAX: Final = 10_000
MESSAGES_MAX: Final = 10_000_000
