"""HDF5 files of the formats that experiments/results/README.md describes: data sets with checksums, named
dimensions and units; text of fixed length; files written whole or not at all."""
import contextlib
import fcntl
import os

import h5py
import numpy as np

from errors import Refused

TEXT, LINE = 128, 1024  # bytes of a text in a data set, and of a long one such as a command


@contextlib.contextmanager
def replacing(path):
    """Yields the name of a file to write, which then replaces `path` (following links) as a whole; after an
    error the old file is as it was.  What is no regular file, such as /dev/stdout, is yielded itself."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        yield path
        return
    part = f"{path}.{os.getpid()}.part"
    try:
        yield part
        os.replace(part, path)
    except (OSError, RuntimeError) as error:  # h5py has a RuntimeError where the disk is full as a file is closed
        raise Refused(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error
    finally:
        with contextlib.suppress(OSError):
            os.remove(part)


@contextlib.contextmanager
def changing(path):
    """While it lasts no other process changes a file of this directory, where the file system has locks: what is read of
    it here can be written back."""
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # NFS may refuse to lock a directory
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write_bytes(path, content):
    """Writes a file as a whole; see `replacing`."""
    with replacing(path) as part, open(part, "wb") as out:
        out.write(content)


def write_text(path, text):
    write_bytes(path, text.encode())


@contextlib.contextmanager
def writing(path, kind, version):
    """Yields an h5py.File to write, of a format and version; see `replacing`."""
    with replacing(path) as part, h5py.File(part, "w") as file:
        set_attributes(file, {"format": kind, "version": version})
        yield file


@contextlib.contextmanager
def reading(path):
    """Yields an h5py.File to read.  Refuses what is missing, no HDF5 file or damaged."""
    try:
        with h5py.File(path, "r", locking=False) as file:
            yield file
    except FileNotFoundError:
        raise Refused(f"{path}: no such file") from None
    except OSError as error:
        raise Refused(f"{path}: {what_failed(path, error)}") from None
    except (KeyError, ValueError, TypeError, IndexError, UnicodeDecodeError, RuntimeError) as error:
        raise Refused(f"{path}: not in the format of this program, or damaged: {str(error) or 'truncated'}") from None


def what_failed(path, error):
    if os.path.isdir(path):
        return "is a directory"
    if os.path.isfile(path) and os.access(path, os.R_OK):
        return "not an HDF5 file" if not h5py.is_hdf5(path) else "cannot be read; the file is damaged"
    return os.strerror(error.errno) if error.errno else str(error)


def format_of(path):
    """The attribute `format` of a file's root, "" when it has none."""
    with reading(path) as file:
        return attribute(file, "format", "")


# ---- attributes ---------------------------------------------------------------------------------

def set_attributes(thing, values):
    """Sets attributes: text of its own length, whole numbers in 64 bits, reals."""
    for name, value in values.items():
        if isinstance(value, str):
            data = value.encode() or b"\0"  # "" is one zero
            value = np.array(data, dtype=h5py.string_dtype("utf-8", len(data)))
        elif isinstance(value, (bool, int, np.integer)) and not isinstance(value, np.unsignedinteger):
            value = np.int64(value)
        thing.attrs.create(name, value)


def text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)  # a name may be cut in a character


def attribute(thing, name, *default):
    """An attribute as text, int or float; `default` where there is none."""
    if name not in thing.attrs:
        if default:
            return default[0]
        raise KeyError(f"{thing.name} attribute {name} is missing")
    value = thing.attrs[name]
    if isinstance(value, (bytes, str)):
        return text(value)
    return value.item()


def attributes(thing):
    return {name: attribute(thing, name) for name in thing.attrs}


# ---- data sets ----------------------------------------------------------------------------------

def write(group, name, values, unit="", scale=None):
    """Writes a data set of one dimension, with a checksum and compressed, which is attached to the data set `scale` or
    else has its own name; values: an array of numbers, or a list of texts."""
    if not isinstance(values, np.ndarray):
        values = as_texts(values, name)
    stored = {"chunks": (min(len(values), max(1, 2**20 // values.dtype.itemsize)),), "fletcher32": True,
              "shuffle": True, "compression": "gzip", "compression_opts": 9}
    data = group.create_dataset(name, data=values, track_times=False, **(stored if len(values) else {}))
    if scale is None:
        data.dims[0].label = name
    else:
        if not h5py.h5ds.is_scale(scale.id):
            scale.make_scale(scale.name.split("/")[-1])
        data.dims[0].attach_scale(scale)
    if unit:
        set_attributes(data, {"unit": unit})
    return data


def as_texts(values, name):
    """Texts in TEXT bytes each, or in LINE where one of them is longer."""
    encoded = [value.encode() for value in values]
    longest = max(encoded, key=len, default=b"")
    if len(longest) >= LINE:
        raise Refused(f"{name}: text of {len(longest)} bytes, at most {LINE - 1} fit: {longest.decode()[:60]}...")
    return np.array(encoded, dtype=h5py.string_dtype("utf-8", TEXT if len(longest) < TEXT else LINE))


def columns(group, names, texts=None):
    """{name: column} of columns that have as many rows each.  texts: those that have texts, all others having numbers; None:
    each has either."""
    found = {name: column(group, name, texts=None if texts is None else name in texts) for name in names}
    lengths = {len(values) for values in found.values()}
    if len(lengths) > 1:
        raise ValueError(f"{group.name}: its columns have {' and '.join(map(str, sorted(lengths)))} rows")
    return found


def column(group, name, *default, texts=None):
    """A data set as an array of numbers, or as a list of texts; `default` where there is none.  texts: whether it must have
    texts, or numbers; None: either."""
    if name not in group:
        if default:
            return default[0]
        raise KeyError(f"{group.name}/{name} is missing")
    data = group[name]
    # A damaged file may state any length.  Deflate makes data at most 1032 times smaller.
    if not isinstance(data, h5py.Dataset) or data.ndim != 1 or data.nbytes > 1032 * os.path.getsize(data.file.filename):
        raise ValueError(f"{data.name} is not a column")
    values = data[()]
    are_texts = values.dtype.kind in "SO"
    if texts not in (None, are_texts) or not (are_texts or values.dtype.kind in "iuf"):
        raise ValueError(f"{data.name} has no {'texts' if texts else 'numbers'}")
    return [text(value) for value in values] if are_texts else values
