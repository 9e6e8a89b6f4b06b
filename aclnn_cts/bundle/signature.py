"""The detached signature of a bundle: `FILE.sig` holds what Ed25519 makes of the SHA-256 of FILE, 64 bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outside import read_outside

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE_SIZE = 64


def signature_path(bundle: Path) -> Path:
    """Where the signature of a bundle lies."""
    return bundle.with_name(f"{bundle.name}.sig")


def is_signature(file: BinaryIO) -> bool:
    """Whether an open file can be one: it has its size."""
    return len(file.read(SIGNATURE_SIZE + 1)) == SIGNATURE_SIZE


_FILE_LIMIT = 1 << 16


class Signer:
    """Signs with a private key, from a PEM (PKCS #8) or OpenSSH file."""

    def __init__(self, path: Path) -> None:
        """UsageError for a file that holds no such key or one with a password; HarnessError without the package."""
        self._key: Ed25519PrivateKey = _loaded(path, private=True)
        self.key_id = _key_id(self._key.public_key())

    def sign(self, digest: bytes) -> bytes:
        """The signature of the file with this SHA-256: `SIGNATURE_SIZE` bytes, the same each time."""
        return self._key.sign(digest)


class Verifier:
    """Checks signatures by a public key, from a PEM (SubjectPublicKeyInfo) or OpenSSH file."""

    def __init__(self, path: Path) -> None:
        """UsageError for a file that holds no such key; HarnessError without the package."""
        self._key: Ed25519PublicKey = _loaded(path, private=False)
        self.key_id = _key_id(self._key)

    def accepts(self, signature: bytes, digest: bytes) -> bool:
        """Whether the key's owner signed the file with this SHA-256."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra

        try:
            self._key.verify(signature, digest)
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
