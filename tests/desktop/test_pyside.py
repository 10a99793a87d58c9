"""The Qt binding survives what the app does all day; PySide6 6.12.0 did not."""

import os
import subprocess
import sys
from pathlib import Path

STORM = Path(__file__).parent.parent / "fixtures" / "signal_storm.py"


def test_100000_signals_and_5000_curve_updates_leave_the_process_alive() -> None:
    env = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    child = subprocess.run([sys.executable, str(STORM)], env=env, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert child.stdout == "100000 signals arrived, 240 points drawn\n"
