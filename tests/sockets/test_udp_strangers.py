"""Processes on datagrams that reflect greetings or forge their source, and addresses that are named later."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from antiphon.sockets.transports.contract import Seed
from antiphon.sockets.transports.udp import UdpMesh
from antiphon.types import ProcessId
from tests.support.cast import LOOPBACK, Told
from tests.support.loopback import on_loopback, until
from tools.lab.strangers import Address, UdpStranger


@asynccontextmanager
async def mesh(name: str, *peers: Address) -> AsyncIterator[UdpMesh]:
    made = UdpMesh(ProcessId(name), (LOOPBACK, 0), peers)
    await made.open(Told())
    try:
        yield made
    finally:
        await made.close()


@on_loopback
async def test_a_peer_that_reflects_our_greetings_stays_a_peer_until_its_farewell() -> None:
    async with mesh("a") as here:
        stranger = UdpStranger()
        await stranger.greet(here.address)
        await until(lambda: stranger.name in here.peers)
        for _ in range(3):
            stranger.send_bytes(await asyncio.get_running_loop().sock_recv(stranger.socket, 65_536), here.address)
        assert stranger.address in here._contacts
        stranger.close()
        await until(lambda: here.peers == ())
        assert here._contacts == {}


@on_loopback
async def test_a_contact_that_is_not_called_any_more_is_no_peer() -> None:
    async with mesh("a") as here, mesh("b", here.address):
        await until(lambda: here.peers == ("b",))
        contact = here._met[ProcessId("b")]
        here._stop_calling(contact)
        assert here.peers == ()
        here._stop_calling(contact)
        await until(lambda: here.peers == ("b",))  # it has called again


@on_loopback
async def test_what_a_process_tells_counts_for_the_address_where_it_receives() -> None:
    """Neither for a forged source, nor for the name of a host that it gives."""
    async with mesh("a") as here:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as elsewhere:
            elsewhere.bind(("127.0.0.2", 0))
            forger, named = UdpStranger("forger"), UdpStranger("named")
            named.address = "localhost", named.address[1]
            forger.send_bytes(forger.hello(), here.address)
            challenge = await forger.answer()
            assert challenge is not None
            elsewhere.sendto(forger.hello(asks=False, echo=challenge.token), here.address)
            await until(lambda: forger.name in here.peers)
            assert here._met[forger.name].told_by == "127.0.0.1"
            await named.greet(here.address)
            await until(lambda: named.name in here.peers)
            token = here._challenges.token(here._met[named.name].to)
            named.send_bytes(named.hello(echo=token, others=(("127.0.0.3", 9),)), here.address)
            await until(lambda: ("127.0.0.3", 9) in here._contacts)
            assert here._contacts["127.0.0.3", 9].told_by == "127.0.0.1"
            forger.close()
            named.close()


@on_loopback
async def test_an_address_that_is_named_after_others_told_of_it_is_a_seed() -> None:
    async with AsyncExitStack() as stack:
        a = await stack.enter_async_context(mesh("a"))
        b = await stack.enter_async_context(mesh("b", a.address))
        c = await stack.enter_async_context(mesh("c", a.address))
        await until(lambda: c.peers == ("a", "b"))
        assert not c._contacts[b.address].named
        c.meet([b.address])
        assert c._contacts[b.address].named  # so it is called for ever
        assert c.seeds == (Seed(a.address, ProcessId("a"), None), Seed(b.address, ProcessId("b"), None))
