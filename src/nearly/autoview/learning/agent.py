"""The learner: what making or keeping a view is worth, learned from what views really saved.

    Q(s, v) = expected(s, v) + scale * network(s, v)

`expected` is what demand and measurements tell; the network learns what they leave out, from experiences (s, v, r, s'): in state s
the view v was kept for a while, saved r, and the state was then s'. The label of an experience is

    y = r + discount * max(0, Q(s', v))

since at any time the view may be dropped, which is worth 0. It is a Double DQN: the network decides whether to keep (is Q > 0?), a
target network, copied from it now and then, says what that is worth. Experiences are replayed in random batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearly.autoview.learning.features import NUMBERS, KeptViews, Vocabulary, stacked
from nearly.autoview.learning.network import Array, Network
from nearly.autoview.options import Option

REPLAYED = 4_000
"""Experiences that are kept."""
BATCH = 32
EVERY, NEW = 50, 0.05
"""Experiences between two trainings: so many, and such a share of all that are kept, since more of the same teaches little."""
BATCHES = 20
COPY = 200
"""Steps after which the target network is copied."""
ENOUGH = 64
"""Experiences before which the network is not asked."""
MOST, LEAST, DECISIONS = 0.3, 0.05, 1_000
"""Exploration falls from the one share to the other within so many decisions; estimates are known from the start."""
CLIP = 3.0
"""The network corrects what is expected by at most so many times the usual size of values."""


@dataclass(frozen=True, slots=True)
class Experience:
    """A while in the life of a view: input and expectation at its beginning and at its end, and what it saved in between."""

    before: Array
    expected: float
    reward: float
    after: Array | None
    expected_after: float
    discount: float


class Agent:
    """Learns the values of views; the same seed and the same experiences give the same values."""

    def __init__(self, seed: int, least: float = LEAST) -> None:
        self.random = np.random.default_rng(seed)
        self.vocabulary = Vocabulary()
        self._network, self._target = Network(NUMBERS, seed), Network(NUMBERS, seed)
        self._experiences: deque[Experience] = deque(maxlen=REPLAYED)
        self._new = self._steps = self.decisions = 0
        self._scale = 0.0
        self.least = least
        self.error: float | None = None
        """The mean squared error of the last training, in units of the usual value."""

    @property
    def exploration(self) -> float:
        """The share of decisions that are made at random."""
        return max(self.least, MOST - (MOST - self.least) * self.decisions / DECISIONS)

    @property
    def experiences(self) -> int:
        return len(self._experiences)

    @property
    def is_ready(self) -> bool:
        return self._steps > 0

    def explores(self) -> bool:
        """Whether the next decision is made at random."""
        self.decisions += 1
        return bool(self.random.random() < self.exploration)

    def vector(self, option: Option, state: KeptViews, capacity: float, owed: float) -> Array:
        return self.vocabulary.vector(option, state, capacity, owed)

    def values(self, vectors: Sequence[Array], expected: Sequence[float]) -> Array:
        """Q of each vector."""
        prior = np.asarray(expected, dtype=float)
        return prior + self._correction(self._network, vectors) if self.is_ready and vectors else prior

    def _correction(self, network: Network, vectors: Sequence[Array]) -> Array:
        network.widen(self.vocabulary.width)
        found: Array = self._scale * np.clip(network(stacked(vectors, network.width)), -CLIP, CLIP)
        return found

    def add(self, experience: Experience) -> None:
        self._experiences.append(experience)
        self._new += 1
        size = abs(experience.reward) + abs(experience.expected) * (1 - experience.discount)
        self._scale += (size - self._scale) / min(len(self._experiences), 500)

    def train(self) -> bool:
        """Learn, where there is something new; whether there was."""
        if self._new < max(EVERY, NEW * len(self._experiences)) or len(self._experiences) < ENOUGH:
            return False
        self._new = 0
        known = list(self._experiences)
        chosen = [known[place] for place in self.random.integers(len(known), size=BATCHES * BATCH)]
        self._network.widen(self.vocabulary.width)
        inputs, residuals = stacked([each.before for each in chosen], self._network.width), self._residuals(chosen)
        for begin in range(0, len(chosen), BATCH):
            rows = slice(begin, begin + BATCH)
            self.error = self._network.learn(inputs[rows], residuals[rows])
            self._steps += 1
            if self._steps % COPY == 1:
                self._target.copy_from(self._network)
        return True

    def _residuals(self, chosen: Sequence[Experience]) -> Array:
        """The labels of experiences beyond what was expected, in units of the usual value; once for all batches of a training."""
        wanted = np.array([each.reward for each in chosen])
        going = [place for place, each in enumerate(chosen) if each.after is not None]
        if going:
            after = [each for each in (chosen[place].after for place in going) if each is not None]
            prior = np.array([chosen[place].expected_after for place in going])
            keeps = prior + self._correction(self._network, after) > 0
            worth = prior + self._correction(self._target, after)
            wanted[going] += np.array([chosen[place].discount for place in going]) * np.where(keeps, worth, 0.0)
        residuals: Array = (wanted - np.array([each.expected for each in chosen])) / max(self._scale, 1e-9)
        return residuals.clip(-CLIP, CLIP)

    def content(self) -> Mapping[str, Any]:
        """As JSON can hold it; experiences are not kept, what was learned from them is."""
        return {
            "names": list(self.vocabulary.names), "network": self._network.content(), "target": self._target.content(),
            "steps": self._steps, "decisions": self.decisions, "scale": self._scale, "random": self.random.bit_generator.state,
        }  # fmt: skip

    def restore(self, content: Mapping[str, Any]) -> None:
        self.vocabulary = Vocabulary(content["names"])
        self._network.restore(content["network"])
        self._target.restore(content["target"])
        self._steps, self.decisions, self._scale = content["steps"], content["decisions"], content["scale"]
        self.random.bit_generator.state = content["random"]
