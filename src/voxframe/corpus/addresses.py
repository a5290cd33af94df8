"""URLs of recordings: classify, tag, normalize, and remove signatures."""

from __future__ import annotations

import re
import uuid
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

_MARK = re.compile(r"[#&]voxframe=[0-9a-f-]{36}$")
_USUAL_PORTS = {"http": ":80", "https": ":443"}


def is_address(source: str) -> bool:
    """Return True if a source is an http or https URL, which the service fetches itself."""
    return source.lower().startswith(("http://", "https://"))


def is_remote(source: str) -> bool:
    """Return True if a source is in a remote store that the service cannot fetch from, such as s3://bucket/a.mp3."""
    return "://" in source and not is_address(source)


def marked(address: str) -> str:
    """Return a URL of the same recording that no other submission has. Its tag is a fragment, which is never sent."""
    return f"{address}{'&' if '#' in address else '#'}voxframe={uuid.uuid4()}"


def unmarked(address: str) -> str:
    """Return a URL without the tag that `marked` adds."""
    return _MARK.sub("", address)


def split(address: str) -> SplitResult:
    """Return the parts of a URL. If its host is invalid, as a service may list it, the host is percent-encoded.

    Example:
        >>> split("https://[x/a.mp3").path
        '/a.mp3'
    """
    try:
        return urlsplit(address)
    except ValueError:
        plain = re.sub(r"[\t\r\n]", "", address)  # urlsplit removes them first
        return urlsplit(re.sub(r"(?<=//)[^/?#]*", lambda host: quote(host[0], "@:", errors="replace"), plain, count=1))


def canonical(address: str) -> str:
    """Return a normalized URL, which is equal for all spellings and signatures of one URL.

    Schemes and hosts are case-insensitive, default ports can be omitted, and fragments are not sent to the server.

    Example:
        >>> canonical("HTTPS://B.example:443/a.mp3#t=10") == canonical("https://b.example/a.mp3")
        True
    """
    parts = split(unsigned(address))
    user, at, host = parts.netloc.rpartition("@")
    host = host.lower().removesuffix(_USUAL_PORTS.get(parts.scheme, ""))
    return urlunsplit(parts._replace(netloc=user + at + host, fragment=""))


def unsigned(address: str) -> str:
    """Return a URL without its temporary signature. The same recording can have many signed URLs.

    Recognizes signatures of Amazon S3 and CloudFront, Google Cloud Storage and Azure Blob Storage by the names of their
    query parameters.

    Example:
        >>> unsigned("https://b.example/a.mp3?versionId=3&X-Amz-Date=20240311&X-Amz-Signature=ab12")
        'https://b.example/a.mp3?versionId=3'
    """
    parts = split(address)
    pairs = whole = parts.query.split("&")
    names = {_name(pair) for pair in pairs}
    for needed, prefix, others in _SIGNATURES:
        if needed <= names:
            pairs = [p for p in pairs if not _name(p).startswith(prefix or "\0") and _name(p) not in others]
    return address if len(pairs) == len(whole) else urlunsplit(parts._replace(query="&".join(pairs)))


def _name(pair: str) -> str:
    return pair.partition("=")[0].lower()


#: Signatures as query parameters: the required names, the prefix of further names, and the further names.
_SIGNATURES: tuple[tuple[set[str], str, set[str]], ...] = (
    ({"x-amz-signature"}, "x-amz-", set()),
    ({"x-goog-signature"}, "x-goog-", set()),
    ({"sig", "se"}, "", set("sig se sv sr sp st spr sip ss srt sdd ske skoid sks skt sktid skv".split())),
    ({"signature", "expires"}, "", set("signature expires awsaccesskeyid googleaccessid key-pair-id".split())),
    ({"signature", "policy", "key-pair-id"}, "", set("signature policy key-pair-id".split())),
)
