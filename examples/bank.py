"""Bank accounts, replicated: each branch applies all transactions in the same order, so all balances are equal.

python examples/bank.py --name north --bind 127.0.0.1:7501
python examples/bank.py --name south --bind 127.0.0.1:7502 --peer 127.0.0.1:7501

Type transactions: `deposit ann 100`, `transfer ann bob 30`, `interest 5` (percent, for all). Another order gives other
balances, so causal order is too weak. Delivery is safe: with plain `Total()` a branch could show a balance and crash,
and no other branch would know the transaction. Branches that join later get the accounts. When branches lose contact,
only the primary view is in business; elsewhere a branch keeps what is typed. A branch gets all others as peers.
"""

import argparse
import asyncio
import json
import sys

import antiphon


class Bank:
    """Accounts, and the number of transactions applied to them."""

    def __init__(self) -> None:
        self.accounts: dict[str, int] = {}
        self.number = 0

    def snapshot(self) -> bytes:
        return json.dumps([self.number, self.accounts]).encode()

    async def follow(self, group: antiphon.Group) -> None:
        async for event in group:
            match event:
                case antiphon.View(members=members) | antiphon.Transitional(members=members):
                    print(f"* {len(members)} branches", flush=True)
                case antiphon.Primary():
                    print("* in business", flush=True)
                case antiphon.Reset(states=states, primary=primary):  # the state of the primary side counts
                    known = states if primary is None else [states[primary]]
                    self.number, self.accounts = max([(0, {}), *map(json.loads, known)], key=lambda state: state[0])
                case antiphon.Message(payload=transaction):  # in any view: primary may end elsewhere at other members
                    done, self.number = self.apply(transaction.decode().split()), self.number + 1
                    result = f"{self.accounts if done else 'refused'}{'' if group.primary else ', may be undone'}"
                    print(f"{self.number} {transaction.decode()}: {result}", flush=True)

    def apply(self, transaction: list[str]) -> bool:
        """Change the accounts; False if the transaction is invalid."""
        accounts = self.accounts
        match transaction:
            case ["deposit", who, amount] if amount.isdecimal():
                accounts[who] = accounts.get(who, 0) + int(amount)
            case ["transfer", source, to, amount] if amount.isdecimal() and accounts.get(source, 0) >= int(amount):
                accounts[source] -= int(amount)
                accounts[to] = accounts.get(to, 0) + int(amount)
            case ["interest", percent] if percent.isdecimal():
                accounts.update({who: balance + balance * int(percent) // 100 for who, balance in accounts.items()})
            case _:
                return False
        return True


async def branch(options: argparse.Namespace) -> None:
    bank, lines = Bank(), asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with asyncio.TaskGroup() as tasks, antiphon.join("bank", snapshot=bank.snapshot, **vars(options)) as group:
        tasks.create_task(bank.follow(group))
        async for line in lines:
            while not group.primary:  # nothing may be promised to a customer now
                print("* out of business: this waits", flush=True)
                await asyncio.sleep(1)
            await group.send(line.rstrip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A branch of a replicated bank.")
    parser.add_argument("--name", required=True, help="the name of this branch")
    parser.add_argument("--bind", default="127.0.0.1:0", help="the address of this branch (host:port)")
    parser.add_argument("--peer", dest="peers", action="append", default=[], help="the address of another branch")
    parser.set_defaults(service=antiphon.Total(safe=True))
    asyncio.run(branch(parser.parse_args()))
