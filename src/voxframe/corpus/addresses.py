"""URLs and names of recordings: classify, tag and normalize URLs, remove signatures, and derive a short name."""

from __future__ import annotations

import re
import uuid
from pathlib import PurePath
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from voxframe.errors import OptionError

_MARK = re.compile(r"[#&]voxframe=[0-9a-f-]{36}$")
_USUAL_PORTS = {"http": ":80", "https": ":443"}
#: Extensions of recordings.
EXTENSIONS = frozenset(
    ".3ga .3gp .8svx .aac .ac3 .aif .aifc .aiff .alac .amr .ape .au .caf .dss .flac .flv .m2ts .m4a .m4b .m4p .m4r "
    ".m4v .mkv .mov .mp2 .mp3 .mp4 .mpeg .mpga .mpg .mts .mxf .oga .ogg .ogv .opus .qcp .ts .tta .voc .wav .webm .wma "
    ".wmv .wv".split()
)
_LONGEST = 120  # characters of a name


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
    pairs = all_pairs = parts.query.split("&")
    names = {_name(pair) for pair in pairs}
    for needed, prefix, further in _SIGNATURES:
        if needed <= names:
            pairs = [p for p in pairs if not _name(p).startswith(prefix or "\0") and _name(p) not in further]
    return address if len(pairs) == len(all_pairs) else urlunsplit(parts._replace(query="&".join(pairs)))


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


def short_name(source: str) -> str | None:
    """Return the stem of a file name, or the last segment of a URL.

    Example:
        >>> short_name("calls/2024/call 7.wav"), short_name("https://b.example/calls/call%207.mp3?sig=x")
        ('call 7', 'call 7.mp3')
    """
    if "://" in source:
        return tidy(unquote(split(source).path.rstrip("/").rpartition("/")[2])) or None
    return tidy(PurePath(source).stem) or None


def tidy(name: str) -> str:
    """Return a name without control characters, slashes and outer spaces, and not longer than 120 characters."""
    printable = "".join(c if c.isprintable() and c not in "/\\" else " " for c in name)
    return re.sub(r"\s+", " ", printable).strip()[:_LONGEST].rstrip()


def checked_name(value: object) -> str | None:
    """Return the name of a recording that a user gave; None for null."""
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if not isinstance(value, str) or not value.strip() or tidy(value) != value.strip():
        raise OptionError(
            f"the name of a recording must be text of 1 to {_LONGEST} characters without slashes, got {value!r:.100}"
        )
    return value.strip()


def job_stem(source: str, transcript_id: str | None, key: str) -> str:
    """Return the wanted name of the recording of a job: from its source, otherwise the id."""
    if source == transcript_id:
        return source
    return short_name(source) or transcript_id or key[:12]
