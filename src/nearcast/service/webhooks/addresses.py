"""Which addresses a webhook may reach: none inside, unless allowed; checked on the very address that is connected to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpcore

from nearcast import settings
from nearcast.errors import NearcastError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# IPv4 inside IPv6 for translators (RFC 6052): the last four bytes are the real target.
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


class AddressRefused(NearcastError):  # noqa: N818  # what happened, in the words of the delivery history
    """A webhook leads to an address that it must not reach."""


@dataclass(frozen=True, slots=True)
class AddressRules:
    """`allowed` networks may be reached although they are private; plain http only if `allows_http`."""

    allowed: tuple[Network, ...] = ()
    allows_http: bool = False

    @staticmethod
    def of(networks: Iterable[str], allows_http: bool = False) -> AddressRules:
        try:
            return AddressRules(tuple(ipaddress.ip_network(one) for one in networks), allows_http)
        except ValueError as error:
            raise NearcastError(f"{error}; expected networks such as 10.0.0.0/8 or fd00::/8") from None

    @staticmethod
    def of_settings() -> AddressRules:
        networks = [one.strip() for one in settings.text("webhook_networks").split(",") if one.strip()]
        return AddressRules.of(networks, bool(settings.limit("webhook_http")))

    def permits(self, address: Address) -> bool:
        if any(address in network for network in self.allowed if network.version == address.version):
            return True
        if isinstance(address, ipaddress.IPv6Address):
            inner = _inner(address)
            if inner is not None:
                return self.permits(inner)
        return address.is_global and not address.is_multicast

    def check_url(self, url: str) -> None:
        """What can be said before the name is resolved; raises AddressRefused."""
        if not url.isascii() or not url.isprintable() or " " in url:
            raise AddressRefused(f"the URL {url!r} has characters that URLs do not have; expected %XX for them, in hosts xn--")
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise AddressRefused(f"the URL {url!r} does not parse: {error}") from None
        if parts.scheme != "https" and not (parts.scheme == "http" and self.allows_http):
            raise AddressRefused(f"the URL {url!r} has the scheme {parts.scheme!r}; expected https")
        if not host or parts.username is not None or parts.password is not None:
            raise AddressRefused(f"the URL {url!r} has no host, or a name and password in it; expected https://host/path")
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return
        if not self.permits(address):
            raise AddressRefused(refusal(host, address))


def refusal(host: str, address: Address) -> str:
    shown = str(address) if host == str(address) else f"{host} ({address})"
    return f"{shown} is not a public address; webhooks may not reach it (setting webhook_networks allows networks)"


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address an IPv6 address stands for, if it does."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _TRANSLATED else None


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Resolves a name, checks every address, and connects to one of those: no second look-up that could answer otherwise."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await _resolve(host, port)
        refused = [address for address in addresses if not self._rules.permits(address)]
        if refused:
            # Also when others of the name are public: a name that leads inside is not to be trusted.
            raise AddressRefused(refusal(host, refused[0]))
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._network.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise AddressRefused(f"webhooks do not reach local sockets ({path!r})")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _resolve(host: str, port: int) -> Sequence[Address]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise httpcore.ConnectError(f"the name {host!r} does not resolve: {error}") from None
    # A zone (fe80::1%eth0) names an interface, and only link-local addresses have one.
    return [ipaddress.ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in found]
