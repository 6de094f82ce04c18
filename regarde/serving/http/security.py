"""Access: checks of Host, Origin and key, and the security headers of every response.

A web page of another site can make a browser send requests to this server, by the server's address or by a name that
resolves to it (DNS rebinding). Host and Origin reveal this, and a page cannot set them.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from starlette.datastructures import Headers

from regarde.serving.http.keys import Keys, digest
from regarde.serving.http.limits import RequestError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
UNAUTHORIZED, FORBIDDEN, MISDIRECTED = 401, 403, 421
SECURITY_HEADERS = {
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
    """The allowed values of Host, the origins allowed besides the server's own, and the keys."""

    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()
    keys: Keys = field(default_factory=Keys)

    def check_names(self, headers: Headers) -> None:
        """Reject a request with another Host, or from a page of another origin."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or without_port(hosts[0]) not in self.hosts:
            raise RequestError(MISDIRECTED, "This host name is not allowed. Start the server with --allow-host NAME.")
        for origin in headers.getlist("origin"):
            if origin not in self.origins and origin.partition("://")[2].lower() != hosts[0].lower():
                raise RequestError(
                    FORBIDDEN, "Requests from this origin are not allowed. Start the server with --allow-origin URL."
                )

    def check_key(self, headers: Headers) -> None:
        """Reject a request that has no valid key in its header, if keys are required."""
        if self.keys.hashes and not self.has_key(headers):
            raise RequestError(UNAUTHORIZED, "A valid key is required. Send the header Authorization: Bearer KEY.")

    def has_key(self, headers: Headers) -> bool:
        return self.keys.allow(_key(headers))

    def client(self, headers: Headers, address: str) -> str:
        """The identity by which requests of a client are counted: its key if that is valid, otherwise its address."""
        return digest(key) if self.keys.allow(key := _key(headers)) else network(address)

    def headers_for(self, origin: str | None) -> dict[str, str]:
        """The headers of a response; a page of an allowed origin may read it."""
        if origin not in self.origins:
            return SECURITY_HEADERS
        shared = {"access-control-allow-origin": str(origin), "vary": "origin"}
        return SECURITY_HEADERS | shared | {"cross-origin-resource-policy": "cross-origin"}


def _key(headers: Headers) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def network(address: str) -> str:
    """An IPv4 address, or the /64 network of an IPv6 address, of which one client has all addresses."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return address
