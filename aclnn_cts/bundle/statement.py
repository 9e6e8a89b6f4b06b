"""What a bundle says of itself: a signed in-toto statement, its Ed25519 keys, and records as JSON lines.

The statement: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md. The envelope and what exactly is
signed (PAE): https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aclnn_cts.core.case_json import canonical_json
from aclnn_cts.core.case_schema import DIALECT, object_schema, trial_definitions, with_words
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.outside import read_outside, spelled
from aclnn_cts.core.printable import shown
from aclnn_cts.core.trial import Trial, earlier_from_json, earlier_to_json, trial_from_json, trial_to_json
from aclnn_cts.core.verdict import Record, Verdict
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.run_directory import RUN_DOCUMENT_BYTES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


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


_FILE_LIMIT = 1 << 16


class Signer:
    """Signs with a private key, from a PEM (PKCS #8) or OpenSSH file."""

    def __init__(self, path: Path) -> None:
        """UsageError for a file that holds no such key or one with a password; HarnessError without the package."""
        self._key: Ed25519PrivateKey = _loaded(path, private=True)
        self.key_id = _key_id(self._key.public_key())

    def sign(self, content: bytes) -> bytes:
        """The signature, 64 bytes, the same each time."""
        return self._key.sign(content)


class Verifier:
    """Checks signatures by a public key, from a PEM (SubjectPublicKeyInfo) or OpenSSH file."""

    def __init__(self, path: Path) -> None:
        """UsageError for a file that holds no such key; HarnessError without the package."""
        self._key: Ed25519PublicKey = _loaded(path, private=False)
        self.key_id = _key_id(self._key)

    def accepts(self, signature: bytes, content: bytes) -> bool:
        """Whether the key's owner signed the content."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra

        try:
            self._key.verify(signature, content)
        except InvalidSignature:
            return False
        return True


def _loaded(path: Path, *, private: bool) -> Any:  # noqa: ANN401 - either key
    option = "--sign" if private else "--key"
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - an extra
    except ImportError:
        raise HarnessError(
            f"{option}: the cryptography package is not installed; pip install 'aclnn-cts[sign]'"
        ) from None
    what = "private" if private else "public"
    expected = f"expected an Ed25519 {what} key (PEM or OpenSSH)"
    content = read_outside(
        path, limit=_FILE_LIMIT, expected=expected.removeprefix("expected "), name=f"{option} {path}"
    )
    is_ssh = b"OPENSSH PRIVATE KEY" in content or content.startswith(b"ssh-")
    try:
        if private:
            load = serialization.load_ssh_private_key if is_ssh else serialization.load_pem_private_key
            key: object = load(content, password=None)
        else:
            key = (serialization.load_ssh_public_key if is_ssh else serialization.load_pem_public_key)(content)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if "password" in str(error).lower():
            raise UsageError(f"{option} {path}: the key has a password; give a copy of it without one") from None
        raise UsageError(f"{option} {path}: {expected}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey):
        raise UsageError(f"{option} {path}: a key of another kind; {expected}")
    return key


def _key_id(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


RECORD_FORMAT = "aclnn-cts/record/2"


def record_to_json(record: Record) -> dict[str, Any]:
    """The record as plain JSON values; the trial as a trial file has it."""
    document: dict[str, Any] = {
        "format": RECORD_FORMAT,
        "trial_id": record.trial_id,
        "trial": trial_to_json(record.trial),
        "attempts": [[msgspec.to_builtins(outcome) for outcome in attempt] for attempt in record.attempts],
        "verdict": msgspec.to_builtins(record.verdict),
        "fingerprint": msgspec.to_builtins(record.fingerprint),
        "clauses": list(record.clauses),
        "waiver": record.waiver,
        "seconds": record.seconds,
        "where": dict(record.where),
    }
    if record.counted_as is not None:
        document["counted_as"] = msgspec.to_builtins(record.counted_as)
    if record.after:
        document["after"] = [earlier_to_json(item) for item in record.after]
    for name in ("attempts", "verdict"):
        document[name] = _spelled(document[name])
    document["trial"]["parameters"] = _spelled(document["trial"]["parameters"])
    return document


def _spelled(value: Any) -> Any:  # noqa: ANN401 - any plain value
    kind = type(value)
    if kind is float:
        return spelled(value)
    if kind is dict:
        return {key: _spelled(item) for key, item in value.items()}
    if kind in (list, tuple):
        return [_spelled(item) for item in value]
    return value


def record_from_json(document: Mapping[str, Any], *, where: str) -> Record:
    """The record of `record_to_json`; HarnessError where it is none."""
    try:
        return Record(
            trial_id=document["trial_id"],
            trial=_trial(document["trial"], where),
            attempts=msgspec.convert(document["attempts"], tuple[tuple[Outcome, ...], ...], strict=False),
            verdict=msgspec.convert(document["verdict"], Verdict, strict=False),
            fingerprint=msgspec.convert(document["fingerprint"], Fingerprint),
            counted_as=msgspec.convert(document.get("counted_as"), Fingerprint | None),
            clauses=tuple(document["clauses"]),
            waiver=document["waiver"],
            seconds=document["seconds"],
            where=document["where"],
            after=earlier_from_json(document.get("after", []), where=where),
        )
    except (KeyError, TypeError, msgspec.ValidationError, UsageError) as error:
        raise HarnessError(f"{where}: no record of the format {shown(RECORD_FORMAT)}: {error}") from None


def _trial(document: object, where: str) -> Trial:
    trial = trial_from_json(document, where=where)
    if not isinstance(trial, Trial):
        raise UsageError(f"{where}: $.trial: a bare case; expected a trial")
    return trial


def record_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a line."""
    parts = (Outcome, Verdict, Fingerprint)
    (outcome, verdict, fingerprint), components = msgspec.json.schema_components(parts, ref_template="#/$defs/{name}")
    whole = object_schema(
        {
            "format": {"const": RECORD_FORMAT},
            "trial_id": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "trial": {"$ref": "#/$defs/Trial"},
            "attempts": {"type": "array", "items": {"type": "array", "items": outcome}},
            "verdict": verdict,
            "fingerprint": fingerprint,
            "clauses": {"type": "array", "items": {"type": "string"}},
            "waiver": {"type": "string"},
            "seconds": {"type": "number"},
            "where": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        {"counted_as": fingerprint, "after": {"type": "array", "items": {"$ref": "#/$defs/Earlier"}}},
    )
    return {
        "$schema": DIALECT,
        "title": "A record of aclnn-cts: one trial, what came of its calls, and the verdict",
        **whole,
        "$defs": {**with_words(components), **trial_definitions()},
    }
