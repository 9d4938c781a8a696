"""What the protocol promises, for the judges. Nothing here imports the protocol."""

from typing import Final

from antiphon.properties.families import Promised

PROMISED: Final = Promised(services={"total": frozenset("W D1 D2 D3 O1 O2 O3 O4 O5 O6 O8 L2 L3 L8".split())})
