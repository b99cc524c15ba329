"""Compilation of loops by numba: when they are compiled, and where their code is cached."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from threading import RLock
from types import CodeType, FunctionType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

CACHE_VARIABLE = "CWB_CACHE_DIR"  #: Where compiled code is kept; empty for nowhere.

#: Turns from which on a compiled loop is worth loading the compiler, which takes half a second, or its code alone.
WORTH_COMPILER, WORTH_CODE = 200_000, 20_000

#: Many short loops together are worth it too: from so many turns each, once so many times ``WORTH_CODE`` were asked.
_LEAST_TURNS, _MANY = 300, 5

Seconds = Callable[[], float]

_meter: ContextVar[tuple[Allowance, Seconds] | None] = ContextVar("meter", default=None)
_observer: ContextVar[Callable[[], AbstractContextManager[object]] | None] = ContextVar("observer", default=None)
_lock = RLock()
_turns_asked = [0]  # in this process, since numba was imported


def kernel(function: Function) -> Function:
    """Compile a function by numba at its first call, and cache the code on disk.

    Its globals may be numbers, modules and other kernels, which are compiled with it.
    """
    return _Kernel(function)  # type: ignore[return-value]


def worth_compiling(turns: int) -> bool:
    """Check if a loop, with many before it, is so long that compiled code beats arrays or interpreted Python."""
    if "numba" not in sys.modules:
        return turns >= WORTH_COMPILER
    _turns_asked[0] += turns
    return turns >= WORTH_CODE or (turns >= _LEAST_TURNS and _turns_asked[0] >= _MANY * WORTH_CODE)


def interpreted_form(function: Function) -> Function:
    """Return the function as interpreted Python with all kernels it calls, for integers over 64 bits."""
    return function.interpreted_form if isinstance(function, _Kernel) else function  # type: ignore[return-value]


@dataclass
class Allowance:
    """Remaining seconds for kernels to run as interpreted Python."""

    left_s: float


@contextmanager
def prefer_interpreted(allowance: Allowance, clock: Seconds) -> Iterator[None]:
    """Interpret kernels without cached code while the allowance lasts, and use it up.

    For instances so small that they may be solved before anything is compiled. The results are the same.
    """
    token = _meter.set((allowance, clock))
    try:
        yield
    finally:
        _meter.reset(token)


@contextmanager
def compilation_observed(observer: Callable[[], AbstractContextManager[object]]) -> Iterator[None]:
    """Enter a context, created anew by ``observer``, during every compilation."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


class _Kernel:
    """Function with its compiled form; see :func:`kernel`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func: Any = function
        self.name: str = self.py_func.__qualname__
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        meter = _meter.get() if self._compiled is None else None
        if meter is None or meter[0].left_s <= 0:
            return self._run(*args)
        if self._folder is not None and any(self._folder.glob(f"*/*.{self.name}-*.nbi")):  # there is cached code
            return self._run(*args)
        import numpy as np

        allowance, clock = meter
        begin = clock()
        try:
            with np.errstate(over="ignore"):  # compiled code wraps around in silence
                return self.interpreted_form(*args)
        finally:
            allowance.left_s -= clock() - begin

    def _run(self, *args: Any) -> Any:
        try:
            return self.compiled_form(*args)
        except OSError:  # while it was compiled, or what it calls: the disk is full, and is done without
            for each in self._reachable_kernels():
                each._folder = each._compiled = None
            return self.compiled_form(*args)

    @property
    def compiled_form(self) -> Callable[..., Any]:
        if self._compiled is None:
            with _lock:
                self._compiled = self._compile()
        return self._compiled

    @functools.cached_property
    def interpreted_form(self) -> Callable[..., Any]:
        return self._link_calls(lambda other: other.interpreted_form)

    def _link_calls(self, form: Callable[[_Kernel], Any]) -> Callable[..., Any]:
        # The globals are filled in after the function exists: it may call itself.
        space = dict(self.py_func.__globals__)
        function = FunctionType(self.py_func.__code__, space, self.name, self.py_func.__defaults__)
        function.__module__, function.__qualname__, function.__doc__ = self.__module__, self.name, self.__doc__
        space |= {name: function if other is self else form(other) for name, other in self._calls.items()}
        return function

    @functools.cached_property
    def _calls(self) -> dict[str, _Kernel]:
        """Kernels among the globals, by their names there."""
        space = self.py_func.__globals__
        values = {name: space.get(name) for name in _names(self.py_func.__code__)}
        return {name: other for name, other in values.items() if isinstance(other, _Kernel)}

    def _compile(self) -> Callable[..., Any]:
        numba = _numba()
        function = self._link_calls(lambda other: other.compiled_form)
        before = numba.config.CACHE_DIR
        try:
            stands_for = self._cached_source()
            if stands_for is not None:
                numba.config.CACHE_DIR = str(stands_for.parent)
                function.__code__ = function.__code__.replace(co_filename=str(stands_for), co_firstlineno=1)
                on_disk: Callable[..., Any] = numba.njit(cache=True)(function)
                return on_disk
        except (OSError, RuntimeError):
            pass  # the folder cannot be written to after all
        finally:
            numba.config.CACHE_DIR = before
        in_memory: Callable[..., Any] = numba.njit(function)
        return in_memory

    def _cached_source(self) -> Path | None:
        """Create the stand-in source file in the cache folder by which numba caches the compiled code.

        numba keys its cache by path and time of the source file. With this file, all copies of cwb with the same
        source share compiled code, and a change elsewhere in a module does not recompile it. With the module's own
        file, numba would load stale code after a kernel in another file changed, which silently gives wrong
        results, and would write next to the module, where an installation may be read-only. numba's cache locators
        are private; that code objects name their file, which can be replaced, is a public interface of Python.
        """
        if self._folder is None:
            return None
        self._folder.mkdir(exist_ok=True)
        path = self._folder / "kernel.py"
        with suppress(FileExistsError), path.open("x") as file:
            file.write(f"# {self.__module__}.{self.name} of cwb\n")
        return path

    @functools.cached_property
    def _folder(self) -> Path | None:
        """Folder of the compiled code; numba itself notices only changes of the file that a function is in."""
        root = cache_folder()
        return None if root is None else root / f"{self.__module__}.{self.name}-{self.digest}"

    @functools.cached_property
    def digest(self) -> str:
        text = hashlib.sha256(repr((sys.version_info, _module_paths())).encode())
        for other in sorted(self._reachable_kernels(), key=lambda each: (each.__module__, each.name)):
            code, space = other.py_func.__code__, other.py_func.__globals__
            constants = {key: space[key] for key in _names(code) if isinstance(space.get(key), Number | str | tuple)}
            text.update(repr((other.__module__, other.name, _contents(code), sorted(constants.items()))).encode())
        return text.hexdigest()[:16]

    def _reachable_kernels(self) -> set[_Kernel]:
        closure: set[_Kernel] = {self}
        waiting: list[_Kernel] = [self]
        while waiting:
            more = set(waiting.pop()._calls.values()) - closure
            closure |= more
            waiting.extend(more)
        return closure


@functools.cache
def _numba() -> Any:
    """Import numba, and forward its compile events to the observer, but not cache loads."""
    import numba
    from numba.core import event

    class Forward(event.Listener):
        def __init__(self) -> None:
            self.entered: list[AbstractContextManager[object] | None] = []

        def on_start(self, event: Any) -> None:
            observer = None if self.entered else _observer.get()
            context = observer() if observer else None
            if context:
                context.__enter__()
            self.entered.append(context)

        def on_end(self, event: Any) -> None:
            if context := self.entered.pop():
                context.__exit__(None, None, None)

    event.register("numba:compile", Forward())  # type: ignore[no-untyped-call]
    return numba


def load_type_registries() -> None:
    """Load numba's type registries ahead, which takes a process's first kernel a third of a second."""
    with suppress(ImportError, AttributeError):
        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()


def _names(code: CodeType) -> set[str]:
    """Return names of globals that code may use, with those of nested functions."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _contents(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(_contents(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames


@functools.cache
def _module_paths() -> list[str]:
    """Return the paths of the package's engines, by which cached code finds the classes of its arguments."""
    folder = Path(__file__).parents[1] / "algorithms"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder of compiled code: the user's cache, a private temporary one, or None.

    ``CWB_CACHE_DIR`` sets another; if it is empty, nothing is cached.
    """
    folder = os.environ.get(CACHE_VARIABLE)
    if folder is not None:
        return _writable(Path(folder) / "kernels") if folder else None
    temporary = Path(tempfile.gettempdir()) / f"cwb-kernels-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    return _writable(_user_cache() / "cwb" / "kernels") or _writable(temporary)


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _writable(folder: Path) -> Path | None:
    """Return the folder if only the user can write to it, since code is loaded from it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
        if hasattr(os, "getuid") and (state.st_uid != os.getuid() or state.st_mode & 0o022):
            return None
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
