"""The systemd units: well formed, and as closed as they say."""
import os
import re
import shutil
import subprocess

import pytest

from harness import BUILD, TGSPOOL

pytestmark = pytest.mark.once
SRC = os.path.abspath(os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), "..", ".."))


@pytest.fixture
def units(tmp_path):
    """The units as installed, but with the program that was built; with them, make knows where it would be."""
    for name in ("tgspool.service", "tgspool-backup.service"):
        with open(os.path.join(BUILD, "contrib", name), encoding="utf-8") as f:
            text = f.read()
        assert not re.search(r"@\w+@", text), "a path that make did not put in"
        (tmp_path / name).write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=" + TGSPOOL, text))
    shutil.copy(os.path.join(SRC, "contrib", "tgspool-backup.timer"), tmp_path)
    return tmp_path


def add_handlers(units):
    (units / "tgspool.service.d").mkdir()
    shutil.copy(os.path.join(SRC, "contrib", "tgspool.service.d", "handlers.conf"), units / "tgspool.service.d")


def analyze(*args):
    r = subprocess.run(["systemd-analyze", *args], capture_output=True, text=True, timeout=60, check=False)
    return r.returncode, r.stdout + r.stderr


def exposure(unit):
    code, text = analyze("security", "--offline=yes", "--no-pager", unit)
    found = re.search(r"Overall exposure level for .*: ([0-9.]+)", text)
    assert code == 0 and found, text
    return float(found.group(1))


def test_units_are_well_formed(units):
    add_handlers(units)
    names = sorted(str(p) for p in units.iterdir() if p.is_file())
    assert len(names) == 3
    code, text = analyze("verify", "--man=no", *names)
    ours = [line for line in text.splitlines() if "tgspool" in line]
    assert code == 0 and not ours, text


def test_the_service_is_closed(units):
    assert exposure(str(units / "tgspool.service")) < 2.0
    assert exposure(str(units / "tgspool-backup.service")) < 2.0


def test_handlers_open_it_a_little(units):
    strict = exposure(str(units / "tgspool.service"))
    add_handlers(units)
    assert strict < exposure(str(units / "tgspool.service")) < 3.0
