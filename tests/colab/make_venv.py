"""Make a virtual environment with the versions that Colab publishes, on top of the one this script runs in.

    .venv/bin/python tests/colab/make_venv.py .venv-colab

Only the packages of constraints.txt are installed (without dependencies: nothing else may move). A .pth file
lets everything else, torch and the course included, be found in the first environment, after these.
"""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

PINS = Path(__file__).with_name("constraints.txt")


def main(folder: Path) -> int:
    """Make the environment anew; returns pip's exit code."""
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
        print("Colab's versions have no wheels for this Python: Colab itself runs 3.13.", file=sys.stderr)
        return code
    below = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    Path(site, "below.pth").write_text(below, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
