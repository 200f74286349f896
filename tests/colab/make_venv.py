"""Make a virtual environment with the versions that Colab publishes, on top of the one this script runs in.

    .venv/bin/python tests/colab/make_venv.py .venv-colab

Only the packages of constraints.txt are installed (without dependencies: nothing else may move). A .pth file
lets everything else, torch and the course included, be found in the first environment, after these.

Those versions have no wheels for a Python that is newer than Colab's own. There the folder holds one file, LEFT_OUT,
with a sentence in it, and `make test` shows that sentence in place of running its tests of Colab's versions.
"""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

PINS = Path(__file__).with_name("constraints.txt")
COLABS_PYTHON = (3, 13)
LEFT_OUT = "left-out"


def main(folder: Path) -> int:
    """Make the environment anew, or say why there is none; returns pip's exit code."""
    if sys.version_info[:2] > COLABS_PYTHON:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / LEFT_OUT).write_text(_why_not(), encoding="utf-8")
        return 0
    print(f"Installing Colab's versions into {folder}: about 300 MB, a minute or two the first time.", flush=True)
    venv.create(folder, clear=True, with_pip=False)
    python = folder / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    install = ["install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--no-deps"]
    code = subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, *install, "--only-binary=:all:", "--requirement", PINS],
        check=False,
    ).returncode
    if code:
        print("Colab's versions could not be installed; what pip says above is why.", file=sys.stderr)
        return code
    below = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    Path(site, "below.pth").write_text(below, encoding="utf-8")
    return 0


def _why_not() -> str:
    colab, here = (".".join(map(str, version)) for version in (COLABS_PYTHON, sys.version_info[:2]))
    return f"Left out: Colab's versions run on Python {colab} or older, and .venv has {here}.\n"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
