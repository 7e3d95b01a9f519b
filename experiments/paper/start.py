"""start.py NAME ARGUMENTS: runs bcd NAME, which is NAME.py here.  What cannot be loaded, as where there is little memory,
is refused in one line."""
import importlib
import os
import sys

import errors


def main(arguments):
    name = os.path.basename(sys.argv[0])
    try:
        return importlib.import_module(name).main(arguments)
    except ImportError as error:  # numpy's own text is a page, and begins with advice
        raise errors.Refused(f"{name}: cannot load what it needs: {error.__cause__ or error}") from None


if __name__ == "__main__":
    sys.argv[:2] = [os.path.join(os.path.dirname(sys.argv[0]), sys.argv[1])]  # as if NAME had been started
    errors.run(main)
