"""On which machine the figures were measured: without it they say little."""

import os
import platform
import subprocess
from pathlib import Path


def machine() -> list[tuple[str, str]]:
    """What decides how fast things are, as (name, value) pairs; how busy it was, where the system tells."""
    import torch

    facts = [
        ("Processor", f"{_processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads for torch"),
        ("GPU", _gpu()),
        ("System", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"),
        ("PyTorch", str(torch.__version__)),
    ]
    if hasattr(os, "getloadavg"):
        facts.append(("Busy before the run", f"{os.getloadavg()[0]:.1f} processes in the last minute"))
    if hasattr(os, "nice") and (priority := os.nice(0)):
        facts.append(("Priority", f"nice {priority}, where 0 is usual and less comes first"))
    return facts


def _processor() -> str:
    """The processor's name as its maker writes it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    if platform.system() == "Darwin":
        asked = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True)
        return asked.stdout.strip() or platform.machine()
    return platform.processor() or platform.machine()


def _gpu() -> str:
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return "Apple GPU (MPS)" if torch.backends.mps.is_available() else "none"
