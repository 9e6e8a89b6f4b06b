"""What a bundle says of itself: an in-toto statement with the SHA-256 of every entry, signed in a DSSE envelope.

The statement: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md. The envelope and what exactly is
signed (PAE): https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from aclnn_cts.core.case_json import canonical_json
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.printable import shown
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.run_directory import RUN_DOCUMENT_BYTES

BUNDLE_FORMAT = "aclnn-cts/bundle/2"
_OLDER_FORMATS = ("aclnn-cts/bundle/1",)
"""Formats whose manifest is the same, but not their records."""
BLOBS = "blobs/"
"""Before the SHA-256 of a recorded output: together the name of its entry."""
MANIFEST_NAME = "MANIFEST.json"
"""Capitals come first in the order of bytes: the manifest opens the file, and says where all else stands."""
SIGNATURE_NAME = "SIGNATURE.json"

LOOKED_INTO = frozenset(("records", "run", "specs", "cases", "report.html"))
"""First words of the names of entries that a verifier looks into; of others it takes the sums."""
MANIFEST_LIMIT = 16 * 1024 * 1024
"""Bytes of a manifest: that of some 80,000 entries."""
MEMORY_LIMIT = 64 * 1024 * 1024
"""Bytes of an entry that is looked into."""

_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_PREDICATE_TYPE = "urn:aclnn-cts:bundle:1"
_PAYLOAD_TYPE = "application/vnd.in-toto+json"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a bundle, and with which entry or structure of the file."""

    where: str
    what: str


class _Annotations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: int


class _Digest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str


class Subject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the bundle: a resource descriptor of in-toto."""

    name: str
    digest: _Digest
    annotations: _Annotations

    @classmethod
    def of(cls, name: str, sha256: str, size: int) -> Subject:
        """The subject of an entry."""
        return cls(name, _Digest(sha256), _Annotations(size))


class Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Totals over the records, which a verifier counts again."""

    records: int
    cases: int
    passed: int
    failed: int
    waived: int
    errors: int
    skipped: int
    out_of_scope: int

    @classmethod
    def of(cls, total: Counts, *, records: int) -> Contents:
        """The totals of a summary beside the number of records."""
        return cls(
            records=records,
            cases=total.cases,
            passed=total.passed,
            failed=total.failed,
            waived=total.waived,
            errors=total.errors,
            skipped=total.skipped,
            out_of_scope=total.out_of_scope,
        )


class Predicate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the statement says of the entries."""

    format: str = BUNDLE_FORMAT
    harness: str
    """The version that judged."""
    adapter: str
    product: str
    """With the words `software device` where one stood in for it: never the product's name alone."""
    ran_on: str
    """What the implementation said of itself in a line; empty where it said nothing."""
    operators: tuple[str, ...]
    started: str
    verdict: str
    totals: Contents
    statuses: bool
    """Whether the implementation returns statuses."""
    report: str
    """The entry that holds the report; where there is none, why: `none: ...`."""
    left_out: Mapping[str, str] = {}
    """What one might look for and does not find, and why."""
    signer: str = ""
    """SHA-256 of the raw public key; empty where nobody signed."""


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The manifest."""

    type: str = msgspec.field(name="_type")
    subject: tuple[Subject, ...]
    predicate_type: str = msgspec.field(name="predicateType")
    predicate: Predicate

    @property
    def is_older(self) -> bool:
        """Whether an older version wrote the records, which this one does not read."""
        return self.predicate.format != BUNDLE_FORMAT

    @classmethod
    def of(cls, subjects: tuple[Subject, ...], predicate: Predicate) -> Statement:
        """The statement about the entries."""
        return cls(type=_STATEMENT_TYPE, subject=subjects, predicate_type=_PREDICATE_TYPE, predicate=predicate)


class _Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keyid: str
    sig: str


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    payload: str
    payload_type: str = msgspec.field(name="payloadType")
    signatures: tuple[_Signature, ...]


def limit_of(name: str) -> int:
    """Bytes of an entry that is looked into."""
    return RUN_DOCUMENT_BYTES if name.startswith("run/") else MEMORY_LIMIT


def statement_bytes(statement: Statement) -> bytes:
    """The one spelling of a statement."""
    return canonical_json(statement) + b"\n"


def read_statement(content: bytes) -> Statement:
    """The statement of its one spelling; HarnessError says what is wrong."""
    try:
        statement = msgspec.json.decode(content, type=Statement)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HarnessError(f"not a statement of the format {shown(BUNDLE_FORMAT)}: {error}") from None
    if statement_bytes(statement) != content:
        raise HarnessError("not spelled as this program spells it")
    kind = (statement.type, statement.predicate_type)
    if kind != (_STATEMENT_TYPE, _PREDICATE_TYPE) or statement.predicate.format not in (BUNDLE_FORMAT, *_OLDER_FORMATS):
        raise HarnessError(f"not a statement of the format {shown(BUNDLE_FORMAT)}")
    return statement


def signed_bytes(payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding of type and payload."""
    kind = _PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def envelope_bytes(payload: bytes, *, signature: bytes, key_id: str) -> bytes:
    """The envelope around a statement's bytes."""
    envelope = _Envelope(
        payload=base64.b64encode(payload).decode(),
        payload_type=_PAYLOAD_TYPE,
        signatures=(_Signature(keyid=key_id, sig=base64.b64encode(signature).decode()),),
    )
    return canonical_json(envelope) + b"\n"


def read_envelope(content: bytes, payload: bytes, *, key_id: str) -> bytes:
    """The signature of the envelope around `payload`; HarnessError where it is not that."""
    try:
        envelope = msgspec.json.decode(content, type=_Envelope)
        [entry] = envelope.signatures
        signature = base64.b64decode(entry.sig, validate=True)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, binascii.Error) as error:
        raise HarnessError(f"no envelope with one signature: {error}") from None
    if entry.keyid != key_id:
        raise HarnessError(
            f"the signature is said to be by the key {shown(entry.keyid)}; the manifest says {shown(key_id)}"
        )
    if envelope_bytes(payload, signature=signature, key_id=key_id) != content:
        raise HarnessError("it is not the envelope around this manifest")
    return signature
