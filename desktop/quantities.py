"""Numbers as a person reads them, in the present language."""

from PySide6.QtCore import QLocale

GIB = 2**30
MIB = 2**20


def count(number: int) -> str:
    """Write a whole number with its separators."""
    return QLocale().toString(number)


def one_decimal(number: float) -> str:
    """Write a number with one decimal."""
    return QLocale().toString(float(number), "f", 1)


def seconds(number: float) -> str:
    """Write seconds: none as 0, short ones with two decimals, the rest with one."""
    if number < 0.005:
        return "0"
    return QLocale().toString(float(number), "f", 2 if number < 1 else 1)


def gib(size_bytes: int) -> str:
    """Write bytes in GiB without the unit."""
    return QLocale().toString(size_bytes / GIB, "f", 2)


def memory(size_bytes: int) -> str:
    """Write bytes of memory in MiB or GiB, with the unit."""
    if size_bytes < GIB:
        return f"{QLocale().toString(size_bytes / MIB, 'f', 0)} MiB"
    return f"{gib(size_bytes)} GiB"


def file_size(size_bytes: int) -> str:
    """Write the size of a file in B, KB, MB or GB (powers of ten), with the unit."""
    if size_bytes < 10**3:
        return f"{count(size_bytes)} B"
    if size_bytes < 10**6:
        return f"{QLocale().toString(size_bytes / 10**3, 'f', 0)} KB"
    if size_bytes < 10**9:
        return f"{QLocale().toString(size_bytes / 10**6, 'f', 0)} MB"
    return f"{QLocale().toString(size_bytes / 10**9, 'f', 2)} GB"
