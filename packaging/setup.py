"""Set up a checkout: system libraries, the environment in ``.venv``, and the models it starts with.

Runs on the system's own Python, standard library alone; each step does nothing where its work is done.
"""

import argparse
import sys

import environment
import models
import system


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=environment.BACKENDS, help="what llama.cpp computes with")
    parser.add_argument("--tests", action="store_true", help="also fetch what only the tests need")
    return parser.parse_args(arguments)


def main() -> None:
    """Run the steps in order; a step that can't be done ends with one sentence that says why."""
    options = parse(sys.argv[1:])
    system.provide(for_tests=options.tests)
    environment.provide(options.backend)
    models.provide("resources/models.toml")
    if options.tests:
        models.provide("tests/fixtures/models.toml")


if __name__ == "__main__":
    main()
