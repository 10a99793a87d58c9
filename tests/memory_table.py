"""Print the forecast against llama.cpp's own allocator for the whole zoo: ``make memory-table``.

KV and recurrent bytes must be equal in every row; the total (with weights, compute and output) within
16 MiB or 2 %. Each model gives its worst row; the worst of all comes last. Arguments: names of models.
"""

import sys
import time

from tests.core.memory.zoo_checks import Row, every, odd, rows, written
from tests.fixtures.zoo_models import MODELS


def main(names: list[str]) -> int:
    """Check the models called ``names``, or all; gives the exit status."""
    worst: list[Row] = []
    faults = checked = refused = 0
    started = time.monotonic()
    for name in names or list(MODELS):
        for path, shape in written(name):
            configs = [*every(shape), *odd()]
            found = list(rows(name, path, shape, configs))
            checked, refused = checked + len(found), refused + len(configs) - len(found)
            faults += sum(row.held_difference != 0 or row.error > 1 for row in found)
            worst.append(max(found, key=lambda row: row.error))
            print(f"{name}: {len(found)} configurations", file=sys.stderr, flush=True)
    print(f"{'model':22} {'its worst row':40} {'simulated':>10} {'forecast':>8}")
    for row in sorted(worst, key=lambda row: row.error):
        print(row)
    fine = "KV and recurrent bytes equal in all, totals within 16 MiB or 2 %"
    spent = f"{time.monotonic() - started:.0f} s"
    verdict = f"{faults} WRONG" if faults else fine
    print(f"{checked} configurations, {refused} refused by llama.cpp, {spent}: {verdict}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
