"""The last few things that were found, by key; whatever they are, the oldest go."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """At most so many values; any thread may ask and add. What was asked for or added last goes last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def get(self, key: Key) -> Value | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def add(self, key: Key, value: Value) -> Value:
        """Remember a value, and give it back."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def forget(self, key: Key) -> None:
        with self._lock:
            self._values.pop(key, None)

    def forget_if(self, test: Callable[[Value], bool]) -> None:
        """Forget what is of no use any more."""
        with self._lock:
            for key in [key for key, value in self._values.items() if test(value)]:
                del self._values[key]
