"""Who may ask: Host and Origin on every request, keys where there are any, and the headers that every answer has.

A page elsewhere can let a browser send requests to this server, under the server's own address or under a name that
somebody points to it (DNS rebinding). Both show in headers that a page cannot set.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders

from regarde.serving.keys import Keys, digest
from regarde.serving.limits import Refusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
UNAUTHORISED, FORBIDDEN, MISDIRECTED = 401, 403, 421
ALWAYS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Policy:
    """Under which names the server answers, to pages of which origins beside its own, and to whom."""

    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()
    keys: Keys = field(default_factory=Keys)

    def check_names(self, headers: Headers) -> None:
        """Refuse a request under another name, and one that a page of another origin has sent."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or without_port(hosts[0]) not in self.hosts:
            raise Refusal(MISDIRECTED, "This server does not answer under that name. See --allow-host.")
        for origin in headers.getlist("origin"):
            if origin not in self.origins and origin.partition("://")[2].lower() != hosts[0].lower():
                raise Refusal(FORBIDDEN, "Pages of that origin may not ask here. See --allow-origin.")

    def check_key(self, headers: Headers) -> None:
        """Refuse a request without a key in its header."""
        if self.keys.hashes and not self.bears_key(headers):
            raise Refusal(UNAUTHORISED, "A key is needed: Authorization: Bearer KEY.")

    def bears_key(self, headers: Headers) -> bool:
        return self.keys.allow(_key(headers))

    def client(self, headers: Headers, address: str) -> str:
        """By what a client is counted: its key, if that is one of ours, and otherwise its address."""
        return digest(key) if self.keys.allow(key := _key(headers)) else network(address)

    def headers_for(self, origin: str | None) -> dict[str, str]:
        """What an answer tells a browser; a page of an allowed origin may read it."""
        if origin not in self.origins:
            return ALWAYS
        shared = {"access-control-allow-origin": str(origin), "vary": "origin"}
        return ALWAYS | shared | {"cross-origin-resource-policy": "cross-origin"}


def complete(headers: MutableHeaders, stated: Iterable[tuple[str, str]]) -> None:
    for name, value in stated:
        headers.setdefault(name, value)


def _key(headers: Headers) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def network(address: str) -> str:
    """An IPv4 address, or the /64 of an IPv6 address: a client of IPv6 has all addresses of that."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))
    return address
