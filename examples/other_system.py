"""A system that is not antiphon, judged by antiphon: a toy of total order whose sequencer is replaced.

    python examples/other_system.py OUT; antiphon check OUT/asks-one; antiphon check OUT/asks-all

Members are processes with a connection to the sequencer, which sends all messages to all members in one order. It fails
when only one member has the last message. Its successor asks members what they have delivered, and goes on from there.
To ask one of them is too little: `antiphon check` shows two members that deliver in different orders.
"""

import json
import multiprocessing
import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from antiphon.trace_writer import TraceWriter  # one file without dependencies, so that other projects can copy it

NAMES = "a", "b", "c"
GROUPS = {"log": {"promises": ["reliable", "fifo", "total"], "members": NAMES}}


def tell(line: TextIO, word: object) -> None:
    print(json.dumps(word), file=line, flush=True)


def member(name: str, port: int, out: Path) -> None:
    trace, delivered = TraceWriter(out, name, GROUPS), list[Any]()
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rw") as line:
        tell(line, name)
        for text in line:
            verb, message = json.loads(text)
            if verb == "send":  # its user has something to say
                tell(line, [name, trace.sent("log")])
            elif verb == "deliver" and message not in delivered:
                delivered.append(message)
                trace.delivered("log", *message)
            elif verb == "history":
                tell(line, delivered)
    trace.stopped(quiet=True)  # the sequencer ends connections after all messages


def ask(line: TextIO, verb: str) -> Any:
    tell(line, [verb, None])
    return json.loads(line.readline())


def order(lines: Iterable[TextIO], message: object) -> None:
    for line in lines:
        tell(line, ["deliver", message])


def play(out: Path, asked: Iterable[str]) -> None:
    with ExitStack() as open_ones:
        server = open_ones.enter_context(socket.create_server(("127.0.0.1", 0)))
        arguments = server.getsockname()[1], out
        processes = [multiprocessing.Process(target=member, args=(name, *arguments)) for name in NAMES]
        for process in processes:
            process.start()
        connections = [open_ones.enter_context(server.accept()[0]) for _ in NAMES]
        found = [open_ones.enter_context(connection.makefile("rw")) for connection in connections]
        lines = {json.loads(line.readline()): line for line in found}
        for name in NAMES:  # the first sequencer
            order(found, ask(lines[name], "send"))
        last = ask(lines["a"], "send")
        order([lines["a"]], last)  # it fails before the others get this message
        for message in max((ask(lines[name], "history") for name in asked), key=len):  # the second one
            order(found, message)
        for message in (ask(lines["b"], "send"), last):  # a repeats its message, because nobody has confirmed it
            order(found, message)
    for process in processes:
        process.join()


if __name__ == "__main__":
    for kind, those in {"asks-one": ("b",), "asks-all": NAMES}.items():
        play(Path(sys.argv[1]) / kind, those)
