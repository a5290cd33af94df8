"""Web addresses of media: told from paths, told from one another, and told to be the same."""

from __future__ import annotations

import re
import uuid
from urllib.parse import urlsplit, urlunsplit

_MARK = re.compile(r"[#&]voxframe=[0-9a-f-]{36}$")
_USUAL_PORTS = {"http": ":80", "https": ":443"}


def is_address(source: str) -> bool:
    """Whether a source is an http or https address, which the service fetches by itself."""
    return source.lower().startswith(("http://", "https://"))


def is_remote(source: str) -> bool:
    """Whether a source is in a store that is not the local file system, such as s3://bucket/a.mp3."""
    return "://" in source and not is_address(source)


def marked(address: str) -> str:
    """A web address that no other submission has: the same media with a fragment, which is not sent to fetch them."""
    return f"{address}{'&' if '#' in address else '#'}voxframe={uuid.uuid4()}"


def unmarked(address: str) -> str:
    """A web address without what `marked` added."""
    return _MARK.sub("", address)


def canonical(address: str) -> str:
    """What a web address leads to, however it is spelled and signed.

    Schemes and hosts have no case, the usual port needs no mention, and a fragment is not sent when media are fetched.

    Example:
        >>> canonical("HTTPS://B.example:443/a.mp3#t=10") == canonical("https://b.example/a.mp3")
        True
    """
    parts = urlsplit(unsigned(address))
    user, at, host = parts.netloc.rpartition("@")
    host = host.lower().removesuffix(_USUAL_PORTS.get(parts.scheme, ""))
    return urlunsplit(parts._replace(netloc=user + at + host, fragment=""))


def unsigned(address: str) -> str:
    """A web address without a signature that lets somebody fetch it for a while: the same media has many of these.

    Signatures of Amazon S3 and CloudFront, Google Cloud Storage and Azure Blob Storage are known, by the names of their
    query parameters.

    Example:
        >>> unsigned("https://b.example/a.mp3?versionId=3&X-Amz-Date=20240311&X-Amz-Signature=ab12")
        'https://b.example/a.mp3?versionId=3'
    """
    parts = urlsplit(address)
    pairs = whole = parts.query.split("&")
    names = {_name(pair) for pair in pairs}
    for needed, prefix, others in _SIGNATURES:
        if needed <= names:
            pairs = [p for p in pairs if not _name(p).startswith(prefix or "\0") and _name(p) not in others]
    return address if len(pairs) == len(whole) else urlunsplit(parts._replace(query="&".join(pairs)))


def _name(pair: str) -> str:
    return pair.partition("=")[0].lower()


#: Names that together make a signature, the beginning that its other names share, and its other names.
_SIGNATURES: tuple[tuple[set[str], str, set[str]], ...] = (
    ({"x-amz-signature"}, "x-amz-", set()),
    ({"x-goog-signature"}, "x-goog-", set()),
    ({"sig", "se"}, "", set("sig se sv sr sp st spr sip ss srt sdd ske skoid sks skt sktid skv".split())),
    ({"signature", "expires"}, "", set("signature expires awsaccesskeyid googleaccessid key-pair-id".split())),
    ({"signature", "policy", "key-pair-id"}, "", set("signature policy key-pair-id".split())),
)
