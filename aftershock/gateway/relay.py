"""An answer on its way from a replica to the client: chunk by chunk, as it comes.

Undisturbed, a chunk is written as soon as it is read, and nothing is read while the client does not take what was
written. As soon as a fault acts on the replica's link, chunks pass a delay line instead, in which each one waits from
the moment it arrived: so a stream is shifted in time, not slowed down.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import aiohttp

from aftershock.gateway.delay import DelayLine, Held
from aftershock.gateway.downstream import ClientGoneError, Downstream
from aftershock.gateway.faults.exchange import Exchange, Hold
from aftershock.gateway.faults.kind import Chunk, Head
from aftershock.gateway.upstream import ReplicaError, read_some


@dataclass(frozen=True)
class Beginning:
    """A head, and what it waits for."""

    head: Head
    hold: Hold


async def relay(source: aiohttp.ClientResponse, head: Head, exchange: Exchange, sink: Downstream) -> None:
    """Pass on a whole answer. Raises ReplicaError or ClientGoneError, by the side that broke."""
    if not exchange.disturbed():
        return await _pass_straight(source.content, head, exchange, sink)
    hold = exchange.response_start(head)
    if head.body is None:
        return await _pass_held(source.content, exchange, sink, Beginning(head, hold))
    await hold.wait()
    await sink.start(head)
    await sink.finish(head.body)


async def _pass_straight(source: aiohttp.StreamReader, head: Head, exchange: Exchange, sink: Downstream) -> None:
    await sink.start(head)
    while not exchange.disturbed():
        try:
            data = await read_some(source)
        except ReplicaError as error:
            if exchange.disturbed():  # a fault that began meanwhile hides the end, too
                return await _pass_held(source, exchange, sink, _broken(exchange, error))
            raise
        if exchange.disturbed():
            return await _pass_held(source, exchange, sink, _arrived(exchange, data, source))
        if source.at_eof():
            return await sink.finish(data)
        await sink.write(data)
    await _pass_held(source, exchange, sink, None)


async def _pass_held(
    source: aiohttp.StreamReader, exchange: Exchange, sink: Downstream, first: Beginning | Held | None
) -> None:
    line = DelayLine()
    async with asyncio.TaskGroup() as group:
        filling = group.create_task(_fill(line, source, exchange, first))
        failure = await _empty(line, sink, first)
        filling.cancel()
    if failure is not None:
        raise failure


async def _empty(
    line: DelayLine, sink: Downstream, first: Beginning | Held | None
) -> ReplicaError | ClientGoneError | None:
    """Write what is due to the client. Hands back what ended it early: raised here, a task group would wrap it."""
    try:
        if isinstance(first, Beginning):
            await first.hold.wait()
            await sink.start(first.head)
        while True:
            item = await line.get()
            if item.error is not None:
                return item.error
            if item.chunk.last:
                await sink.finish(item.chunk.data)
                return None
            await sink.write(item.chunk.data)
    except ClientGoneError as gone:
        return gone


async def _fill(
    line: DelayLine, source: aiohttp.StreamReader, exchange: Exchange, first: Beginning | Held | None
) -> None:
    """Read what arrives, as it arrives, into the line, up to the end."""
    item: Held | None = None
    if isinstance(first, Held):
        item = first
    elif isinstance(first, Beginning) and source.total_bytes > 0 and source.exception() is None:
        # This came in the head's packets, and shares their fate.
        item = Held(Chunk(source.read_nowait(), source.at_eof()), exchange.no_hold())
    while item is None or not item.chunk.last:
        if item is not None:
            await line.put(item)
        try:
            item = _arrived(exchange, await read_some(source), source)
        except ReplicaError as error:
            item = _broken(exchange, error)
    await line.put(item)


def _arrived(exchange: Exchange, data: bytes, source: aiohttp.StreamReader) -> Held:
    chunk = Chunk(data, last=source.at_eof())
    return Held(chunk, exchange.chunk(chunk))


def _broken(exchange: Exchange, error: ReplicaError) -> Held:
    chunk = Chunk(b"", last=True)
    return Held(chunk, exchange.chunk(chunk), error)
