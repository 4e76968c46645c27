"""A disk that fills, or cannot share memory: under the real SQLite, over the real files.

SQLite asks a "VFS" for everything it does with files. This one is SQLite's own for Unix, but for
two of its functions. While it is open, every new connection of this process uses it.
"""

# ruff: noqa: N815 - the names of SQLite's own structures

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
from enum import StrEnum
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ctypes import _CFunctionType as _Callback
    from types import TracebackType


class Memory(StrEnum):
    """Whether a WAL's index can be shared between processes."""

    WORKS = "works"
    ABSENT = "absent"  #: as with SQLite's `unix-dotfile`: it knows beforehand
    FAILS = "fails"  #: as on a file system without shared mappings: it learns it by trying


def _fields(names: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_void_p) for name in names.split()]


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`; of version 1 it ends before `xShmMap`."""

    iVersion: int
    xWrite: int | None
    xShmMap: int | None
    _fields_ = [
        ("iVersion", ctypes.c_int),
        *_fields("xClose xRead xWrite xTruncate xSync xFileSize xLock xUnlock"),
        *_fields("xCheckReservedLock xFileControl xSectorSize xDeviceCharacteristics"),
        *_fields("xShmMap xShmLock xShmBarrier xShmUnmap xFetch xUnfetch"),
    ]


class _File(ctypes.Structure):
    """`sqlite3_file`: its methods, and then what they keep."""

    _fields_ = [("pMethods", ctypes.POINTER(_Methods))]


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs`."""

    zName: bytes
    pNext: int | None
    xOpen: int | None
    _fields_ = [
        *((name, ctypes.c_int) for name in ("iVersion", "szOsFile", "mxPathname")),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        *_fields("pAppData xOpen xDelete xAccess xFullPathname xDlOpen xDlError xDlSym xDlClose"),
        *_fields("xRandomness xSleep xCurrentTime xGetLastError xCurrentTimeInt64"),
        *_fields("xSetSystemCall xGetSystemCall xNextSystemCall"),
    ]


_Open = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(_File),
    ctypes.c_int,
    ctypes.c_void_p,
)
_Write = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
)
_ShmMap = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p
)


class Disk:
    """A context manager. `room`: so many more writes succeed; None: as many as there are."""

    def __init__(self, memory: Memory = Memory.WORKS) -> None:
        self.memory = memory
        self.room: int | None = None
        # the very library that Python's module uses, linked to it or part of it
        self._library = ctypes.CDLL(_sqlite3.__file__)
        self._library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._unix = self._library.sqlite3_vfs_find(b"unix")
        self._vfs = _Vfs.from_buffer_copy(self._unix.contents)
        self._vfs.zName, self._vfs.pNext = b"tests-disk", None
        #: ours beside SQLite's own, by the address of SQLite's
        self._methods: dict[int, _Methods] = {}
        self._callbacks: list[object] = []
        self._vfs.xOpen = self._address(_Open(self._open))

    def __enter__(self) -> Self:
        _LIVES_ON.append(self)
        self._register(self._vfs)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.room = None
        self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
        self._register(self._unix.contents)

    def _register(self, vfs: _Vfs) -> None:
        self._library.sqlite3_vfs_register(ctypes.byref(vfs), 1)

    def _address(self, callback: _Callback) -> int | None:
        self._callbacks.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value

    def _open(self, _vfs: int, name: int, file: object, flags: int, out: int) -> int:
        # with our own VFS: the file remembers it, and SQLite's is a prefix of ours
        opened = _Open(self._unix.contents.xOpen)(
            ctypes.addressof(self._vfs), name, file, flags, out
        )
        methods = file.contents.pMethods  # type: ignore[attr-defined]
        if opened == sqlite3.SQLITE_OK and methods:
            file.contents.pMethods = ctypes.pointer(self._ours(methods.contents))  # type: ignore[attr-defined]
        return int(opened)

    def _ours(self, theirs: _Methods) -> _Methods:
        address = ctypes.addressof(theirs)
        if address not in self._methods:
            ours = _Methods.from_buffer_copy(theirs)
            write = _Write(theirs.xWrite or 0)
            ours.xWrite = self._address(_Write(lambda *call: self._write(write, *call)))
            if self.memory is Memory.ABSENT:
                ours.iVersion = 1
            elif self.memory is Memory.FAILS:
                ours.xShmMap = self._address(_ShmMap(lambda *_: sqlite3.SQLITE_IOERR_SHMMAP))
            self._methods[address] = ours
        return self._methods[address]

    def _write(self, write: object, file: int, content: int, size: int, offset: int) -> int:
        """Write, while there is room; then half of it, as a disk does that fills."""
        assert callable(write)
        if self.room == 0:
            write(file, content, size // 2, offset)
            return sqlite3.SQLITE_FULL
        if self.room is not None:
            self.room -= 1
        return int(write(file, content, size, offset))


#: connections that are closed late still use them
_LIVES_ON: list[Disk] = []
