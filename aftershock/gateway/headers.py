"""Which headers pass a proxy."""

from __future__ import annotations

from multidict import CIMultiDict, CIMultiDictProxy

HOP_BY_HOP = (
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
)
"""They speak about one connection (RFC 9110, 7.6.1), of which a proxy has two."""


def passable(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """A copy without the hop-by-hop headers and those that `Connection` names."""
    passed = CIMultiDict(headers)
    for value in headers.getall("Connection", ()):
        for name in value.split(","):
            passed.popall(name.strip(), None)
    for name in HOP_BY_HOP:
        passed.popall(name, None)
    return passed
