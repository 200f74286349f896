"""Refuse, in every Python process that starts with this folder on PYTHONPATH, connections that leave the machine.

An audit hook sees all of them, asyncio's included, and cannot be taken out again.
"""

import importlib.machinery
import importlib.util
import ipaddress
import os
import socket
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
_CONNECTIONS = {"socket.connect", "socket.sendto", "socket.sendmsg"}


def _stays_here(host):
    if host is None or isinstance(host, bytes):
        host = (host or b"").decode("ascii", "replace")
    if host in ("", "localhost") or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def _is_number(host):
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _refuse(event, arguments):
    if event in _LOOKUPS:
        host = arguments[0]
        allowed = _stays_here(host) or _is_number(host) or host == socket.gethostname()
    elif event in _CONNECTIONS:
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # a path or None: stays on the machine
        allowed = _stays_here(host)
    else:
        return
    if not allowed:
        raise ConnectionRefusedError(f"the tests run without a network, and this is an attempt to reach {host!r}")


def _run_the_shadowed_one():
    """Python runs one sitecustomize; the one this file stands before must not be lost."""
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.addaudithook(_refuse)
_run_the_shadowed_one()
