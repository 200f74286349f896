"""Certificates that can be verified: Open Badges 3.0, signed, as a file, a picture and a QR code.

`issue` makes one, `save` writes it, `verify` answers what it proves. They need the extra "certificate" (PyJWT,
cryptography, segno); this package itself can be imported without it.
"""
