from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from ingestd.sdk.formats.parser_process.messages import ParseOrder, receive_order, send_order


class AbortingReceiver(socket.socket):
    """The parent's end of a channel to a child that aborts as soon as it has the whole order."""

    child: socket.socket
    order: ParseOrder | None = None

    def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]
        super().sendall(data, flags)
        if (
            len(data) > 100 and self.order is None
        ):  # the order itself; its sizes and descriptor were sent before or with it
            self.order, descriptor = receive_order(self.child)
            os.close(descriptor)
            self.child.close()


def test_an_order_is_sent_although_the_child_ends_as_soon_as_it_has_it() -> None:
    ours, child = socket.socketpair()
    with AbortingReceiver(fileno=ours.detach()) as channel, Path(os.devnull).open("rb") as file:
        channel.child = child
        order = ParseOrder(
            module="m", format="F", paths=(), settings=msgspec.Raw(b'"' + b"x" * 200 + b'"'), file="a.xlsx"
        )
        send_order(channel, order, file.fileno())
        assert channel.order == order
