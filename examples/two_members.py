"""Two members send at the same time; both deliver all messages in the same order."""

import asyncio

import antiphon


async def bid(group: antiphon.Group, *amounts: int) -> None:
    for amount in amounts:
        await group.send(str(amount).encode())  # waits while flow control holds it back


async def delivered(group: antiphon.Group, count: int) -> list[str]:
    bids: list[str] = []
    async for event in group:  # one stream of messages and views, the same at all members
        if isinstance(event, antiphon.Message):
            bids.append(f"{event.sender.partition('#')[0]} bids {event.payload.decode()}")
        if len(bids) == count:
            break
    return bids


async def main() -> None:
    async with (
        antiphon.Member(name="ann") as ann,  # usually another process, on another machine
        antiphon.Member(name="bob", peers=[ann.address]) as bob,
    ):
        at_ann, at_bob = await asyncio.gather(ann.join("auction"), bob.join("auction"))
        await asyncio.gather(at_ann.ready(2), at_bob.ready(2))  # until both are in one view
        await asyncio.gather(bid(at_ann, 10, 30), bid(at_bob, 20, 40))
        print("ann delivers", await delivered(at_ann, 4))
        print("bob delivers", await delivered(at_bob, 4))


asyncio.run(main())
