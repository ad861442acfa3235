"""A small neural network in NumPy: two hidden layers of rectified units, a linear output, trained by Adam.

Its input may grow: new inputs begin with small random weights. The output layer begins at 0, so that an untrained network says 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
LAYERS = (64, 32)
RATE = 1e-3
FIRST, SECOND = 0.9, 0.999
"""Of Adam's two means."""


class Network:
    """A function from vectors to numbers."""

    def __init__(self, width: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        sizes = (width, *LAYERS, 1)
        self.weights: list[Array] = []
        self.offsets: list[Array] = []
        for place, (given, made) in enumerate(pairwise(sizes)):
            last = place == len(sizes) - 2
            self.weights.append(np.zeros((given, made)) if last else self._start(given, made))
            self.offsets.append(np.zeros(made))
        self._forget_means()

    def _start(self, given: int, made: int) -> Array:
        found: Array = self._random.normal(0.0, np.sqrt(2.0 / max(given, 1)), (given, made))
        return found

    def _forget_means(self) -> None:
        self._means = [[np.zeros_like(each) for each in (*self.weights, *self.offsets)] for _ in range(2)]
        self._steps = 0

    @property
    def width(self) -> int:
        return int(self.weights[0].shape[0])

    def widen(self, width: int) -> None:
        """Take longer vectors from now on; what it says of the others stays, where the new entries are 0."""
        if width > self.width:
            more = 0.1 * self._start(width, LAYERS[0])[: width - self.width]
            self.weights[0] = np.vstack([self.weights[0], more])
            for means in self._means:
                means[0] = np.vstack([means[0], np.zeros_like(more)])

    def __call__(self, inputs: Array) -> Array:
        """A number for each row."""
        found: Array = self._layers(inputs)[-1][:, 0]
        return found

    def _layers(self, inputs: Array) -> list[Array]:
        layers = [inputs]
        for place, (weights, offsets) in enumerate(zip(self.weights, self.offsets, strict=True)):
            found = layers[-1] @ weights + offsets
            layers.append(found if place == len(self.weights) - 1 else np.maximum(found, 0.0))
        return layers

    def learn(self, inputs: Array, wanted: Array) -> float:
        """One step down the gradient of the mean squared error, of which no error counts more than 1; the error before."""
        layers = self._layers(inputs)
        error = layers[-1][:, 0] - wanted
        slope = np.clip(error, -1.0, 1.0)[:, None] / len(inputs)
        gradients: list[Array] = []
        offsets: list[Array] = []
        for place in reversed(range(len(self.weights))):
            gradients.insert(0, layers[place].T @ slope)
            offsets.insert(0, slope.sum(axis=0))
            slope = (slope @ self.weights[place].T) * (layers[place] > 0)
        self._step([*gradients, *offsets])
        return float(np.mean(error**2))

    def _step(self, gradients: list[Array]) -> None:
        self._steps += 1
        for place, (values, gradient) in enumerate(zip((*self.weights, *self.offsets), gradients, strict=True)):
            first, second = self._means[0][place], self._means[1][place]
            first += (1 - FIRST) * (gradient - first)
            second += (1 - SECOND) * (gradient**2 - second)
            size = np.sqrt(second / (1 - SECOND**self._steps)) + 1e-8
            np.subtract(values, RATE * (first / (1 - FIRST**self._steps)) / size, out=values)

    def copy_from(self, other: Network) -> None:
        """Say what another one says."""
        self.weights = [each.copy() for each in other.weights]
        self.offsets = [each.copy() for each in other.offsets]
        self._forget_means()

    def content(self) -> Mapping[str, Any]:
        return {"weights": [each.tolist() for each in self.weights], "offsets": [each.tolist() for each in self.offsets]}

    def restore(self, content: Mapping[str, Any]) -> None:
        self.weights = [np.asarray(each, dtype=float) for each in content["weights"]]
        self.offsets = [np.asarray(each, dtype=float) for each in content["offsets"]]
        self._forget_means()
