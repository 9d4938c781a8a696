"""A process as its applications see it: one identity, one address, and any number of groups.

Deliveries of all groups of a member have one order. `process.py` implements it.
"""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Self

from antiphon.api.arguments import peer_addresses, require_directory
from antiphon.api.events import Event
from antiphon.api.founding import Found, Policy
from antiphon.api.group import Group
from antiphon.api.identity import new_identity
from antiphon.api.process import LocalProcess
from antiphon.api.services import TOTAL, Service
from antiphon.api.settings import settings
from antiphon.api.states import Snapshot
from antiphon.api.tracing import member_journal
from antiphon.sockets.offenders import Offence
from antiphon.sockets.transports.choice import TransportMaker, make_transport, parse_address
from antiphon.types import ProcessId


class Member:
    """One process. An async context: `async with antiphon.Member(bind=…, peers=[…]) as member`."""

    def __init__(
        self,
        *,
        bind: str = "127.0.0.1:0",
        peers: Iterable[str] = (),
        name: str | None = None,
        advertise: str | None = None,
        service: Service = TOTAL,
        preset: str = "lan",
        transport: str | TransportMaker = "tcp",
        multicast: str | None = None,
        trace: str | Path | None = None,
        found: Found = "together",
        least_members: int | None = None,
        join_within: float | None = None,
        **chosen: Any,
    ) -> None:
        """`name`: of the process, by default made from its address; `chosen`: fields of `MemberSettings`.

        `transport`: `tcp`; `udp`, where the protocol repairs losses; or a function that makes one, such as
        `MemoryNetwork().attach`. It is the same for all members. `multicast`: on UDP, an address such as
        `239.1.2.3:7500`, where a frame for several members leaves once; it does not pass routers. `trace`: a directory
        that several members may share, for `antiphon check` and the other commands that read traces.

        `found`, `least_members` and `join_within` (`founding.Policy`) say what `join` does if it finds no group: wait
        until all `peers` are reached (default), found with fewer, never or anyway; and for how long.

        `service`: the order of delivery in all groups of this member: `Total()`, `Causal("fast")`, `Fifo()` or
        `Reliable()`. `join` may choose for each group within that kind.
        """
        policy = Policy(found, least_members, join_within)
        address = parse_address(bind)
        seeds = peer_addresses(peers)
        me = new_identity(name, address)
        wanted = settings(preset, {"service": service, **chosen})
        carrier = make_transport(
            transport,
            me,
            bind,
            seeds,
            advertise=advertise,
            multicast=multicast,
            datagram_bytes=wanted.datagram_bytes,
        )
        recorder = None if trace is None else member_journal(require_directory(trace), me, wanted)
        core = wanted.new_core(me, datagrams=not carrier.streams, tracing=trace is not None)
        self._process = LocalProcess(me, core, carrier, recorder)
        self._process.act_by_itself(wanted, policy)

    @property
    def id(self) -> ProcessId:
        """The identity of this process: its name, and a number that is higher at each later start."""
        return self._process.id

    @property
    def address(self) -> str:
        """Where other processes find this one; with port 0 in `bind`, the port that the system chose."""
        return self._process.address

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The processes that it is connected with."""
        return self._process.peers

    @property
    def offenders(self) -> tuple[Offence, ...]:
        """Processes that broke a rule of the transport; the latest first."""
        return self._process.offenders

    @property
    def unreached(self) -> dict[str, str]:
        """The addresses in `peers` where no process is reached now, each with the reason."""
        return self._process.unreached

    async def __aenter__(self) -> Self:
        await self._process.start()
        return self

    async def __aexit__(self, kind: object = None, *_: object) -> None:
        await self._process.leave_all()
        if kind is None:
            self._process.require_trace()

    async def abort(self) -> None:
        """End without leaving any group: to others this is a crash."""
        await self._process.abort()

    async def join(
        self,
        name: str,
        *,
        service: Service | None = None,
        snapshot: Snapshot | None = None,
        contacts: tuple[ProcessId, ...] | None = None,
        found: Found | None = None,
        least_members: int | None = None,
        join_within: float | None = None,
    ) -> Group:
        """Become a member of a group; returns when this process is in the first view.

        `service`: what the group promises about deliveries, by default as `Member` was given. It is the same at all
        members, and of the same kind as that of `Member`: `Total()` and `Total(safe=True)` are of one kind.
        `snapshot` returns the application's state, for later joiners; an application with a `snapshot` gets
        `Reset` events with the states that it must take over. `contacts`: the processes to ask, by default all known.
        `found`, `least_members` and `join_within`: for this group, instead of what `Member` was given.
        """
        return await self._process.join(
            name,
            service=service,
            snapshot=snapshot,
            contacts=contacts,
            found=found,
            least_members=least_members,
            join_within=join_within,
        )

    def events(self) -> AsyncIterator[tuple[Group, Event]]:
        """The events of all groups in their one order, instead of those of each group by itself.

        It ends when the member ends. Call it before or after joining groups, but before any group is read by itself.
        """
        return self._process.read_together()
