"""`python -m harness` and the console script."""

import signal


def main() -> None:
    """Run the command line. Until it is loaded, Ctrl-C ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from harness.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
