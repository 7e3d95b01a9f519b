"""What a command refuses: one line that says what is wrong, where, and what to do."""
import argparse
import os
import sys

WRONG_USE = 2  # exit status


class Refused(Exception):
    """The message is the line, without the name of the program; wrong flags have exit status 2."""

    def __init__(self, line, status=1):
        super().__init__(line)
        self.status = status


class Parser(argparse.ArgumentParser):
    """Refuses wrong flags in one line."""

    def error(self, message):
        raise Refused(f"{message}; see {self.prog} --help", WRONG_USE)


def name(text):
    """The type of an argument that names something: "" is often an unset variable of the shell."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def run(main):
    """Runs a command's main(arguments), which returns its exit status or None.  A refusal is printed as
    one line, with control characters, which names from a file may hold, escaped."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except Refused as refused:
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(refused))
        print(f"bcd: {line}", file=sys.stderr)
        status = refused.status
    except KeyboardInterrupt:
        status = 130  # 128 + SIGINT
    except BrokenPipeError:  # whoever read the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 1
    except MemoryError:
        print("bcd: there is not enough memory", file=sys.stderr)
        status = 1
    except OSError as error:
        print(f"bcd: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        status = 1
    sys.exit(status)
