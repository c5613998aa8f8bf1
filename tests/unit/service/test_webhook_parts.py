"""Signatures, addresses, waiting times: the parts of a webhook that need no receiver."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import random

import httpcore
import pytest

from nearcast.errors import NearcastError
from nearcast.service.webhooks.addresses import AddressRefused, AddressRules, CheckedNetwork
from nearcast.service.webhooks.retrying import RetryRules, read_retry_after
from nearcast.wire.signatures import SignatureError, check_secret, make_secret, sign, verify

# The example of the specification's reference libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def test_the_signature_is_that_of_the_specification() -> None:
    headers = sign([SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, BODY)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_either_secret_verifies_while_one_replaces_the_other() -> None:
    old, new = make_secret(), make_secret()
    headers = sign([new, old], "id", 1000, BODY)
    verify(old, headers, BODY, 1000)
    verify(new, {name.title(): value for name, value in headers.items()}, BODY, 1299)
    with pytest.raises(SignatureError, match="none of the signatures"):
        verify(make_secret(), headers, BODY, 1000)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"webhook-id": "other"}, "none of the signatures"),
        ({"webhook-timestamp": "1001"}, "none of the signatures"),
        ({"webhook-timestamp": "500"}, "an old request"),
        ({"webhook-timestamp": "soon"}, "'soon'"),
        ({"webhook-signature": "v2,xyz garbage"}, "none of the signatures"),
    ],
)
def test_whatever_was_changed_is_found(change: dict[str, str], said: str) -> None:
    with pytest.raises(SignatureError, match=said):
        verify(SECRET, {**sign([SECRET], "id", 1000, BODY), **change}, BODY, 1000)


def test_another_body_or_no_headers_are_refused() -> None:
    with pytest.raises(SignatureError, match="none"):
        verify(SECRET, sign([SECRET], "id", 1000, BODY), BODY + b" ", 1000)
    with pytest.raises(SignatureError, match="lacks the headers webhook-id"):
        verify(SECRET, {}, BODY, 1000)


@pytest.mark.parametrize(
    "secret", ["", SECRET.removeprefix("whsec_"), "whsec_!!", "whsec_" + base64.b64encode(b"few").decode()]
)
def test_a_secret_of_another_form_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(NearcastError) as caught:
        check_secret(secret)
    assert not secret or secret not in str(caught.value)


INSIDE = [
    "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.5.5", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
    "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
    "2002:7f00:1::", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_not_permitted(address: str) -> None:
    assert not AddressRules().permits(ipaddress.ip_address(address))
    shown = f"[{address}]" if ":" in address else address
    with pytest.raises(AddressRefused, match="not a public address"):
        AddressRules().check_url(f"https://{shown}/hook")


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_permitted(address: str) -> None:
    assert AddressRules().permits(ipaddress.ip_address(address))


def test_a_network_can_be_allowed_and_only_that() -> None:
    rules = AddressRules.of(["10.0.0.0/8", "fd00::/8"])
    assert rules.permits(ipaddress.ip_address("10.9.9.9"))
    assert rules.permits(ipaddress.ip_address("fd00::5"))
    assert rules.permits(ipaddress.ip_address("::ffff:10.9.9.9"))
    assert not rules.permits(ipaddress.ip_address("127.0.0.1"))
    with pytest.raises(NearcastError, match=r"10.0.0.1/8.*expected networks"):
        AddressRules.of(["10.0.0.1/8"])


@pytest.mark.parametrize(
    "url",
    ["http://example.org/", "ftp://example.org", "https:///x", "https://a:b@example.org/", "https://[::1", "https://x:99999/"],
)
def test_a_url_that_is_no_plain_https_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused, match="the URL"):
        AddressRules().check_url(url)


def test_a_name_that_leads_inside_is_refused_when_connecting() -> None:
    """The check is on the address that is connected to, so a name cannot be public first and private then."""
    network = CheckedNetwork(AddressRules())
    with pytest.raises(AddressRefused, match="localhost"):
        asyncio.run(network.connect_tcp("localhost", 80))
    with pytest.raises(AddressRefused, match="local sockets"):
        asyncio.run(network.connect_unix_socket("/run/x"))
    with pytest.raises(httpcore.ConnectError, match="does not resolve"):
        asyncio.run(network.connect_tcp("nowhere.invalid", 80))


def test_waiting_grows_has_jitter_and_an_end() -> None:
    rules, chance = RetryRules(first_s=2, factor=3, longest_s=100), random.Random(1)
    for n_failed, longest in [(1, 2), (2, 6), (3, 18), (4, 54), (5, 100), (50, 100)]:
        waits = {rules.wait_s(n_failed, None, chance) for _ in range(50)}
        assert len(waits) > 40
        assert min(waits) >= longest / 2
        assert max(waits) <= longest


def test_the_receiver_may_ask_for_more_time_but_not_for_ever() -> None:
    rules, chance = RetryRules(first_s=2, longest_s=100), random.Random(1)
    assert rules.wait_s(1, 30, chance) == 30
    assert rules.wait_s(1, 1e9, chance) == 100
    assert rules.wait_s(3, 0, chance) > 0


def test_retry_after_is_seconds_or_a_date() -> None:
    assert read_retry_after("120", 0) == 120
    assert read_retry_after("Thu, 01 Jan 1970 00:02:00 GMT", 20) == 100
    assert read_retry_after("Thu, 01 Jan 1970 00:02:00 GMT", 500) == 0
    assert read_retry_after("soon", 0) is None
    assert read_retry_after("Thu, 01 Jan 1970 00:02:00 +99999999999999999999", 0) is None
    assert read_retry_after(None, 0) is None
