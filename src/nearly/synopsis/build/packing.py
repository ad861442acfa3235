"""States as named arrays, for travel between processes and for disk.

Sampled rows are written as differences from the mean of their leaf, in the narrowest type that gives the same numbers back
(PASS, section 2.3.4): values in a leaf are alike, so differences are short.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from nearly.synopsis.build.drafting import LeafCounts
from nearly.synopsis.structure.rows import Floats, Integers, Rows, concatenate, empty
from nearly.synopsis.structure.state import Largest, Leaves, TreeState
from nearly.synopsis.structure.statistics import Hull, Scales
from nearly.synopsis.structure.stored_rows import Outliers, Sample
from nearly.synopsis.structure.tree import Tree

Arrays = dict[str, np.ndarray[Any, Any]]
_NARROW = (np.int8, np.int16, np.int32, np.float32)
_SCALES = (1.0, 100.0, 10_000.0)


def to_bytes(arrays: Mapping[str, Any]) -> bytes:
    """Arrays as bytes. Law: `from_bytes(to_bytes(a)) == a`."""
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def from_bytes(data: bytes) -> Arrays:
    with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
        return {name: loaded[name] for name in loaded.files}


def pack_rows(rows: Rows, prefix: str = "") -> Arrays:
    return {
        f"{prefix}coordinates": rows.coordinates, f"{prefix}values": rows.values, f"{prefix}identity": rows.identity,
        f"{prefix}ticket": rows.ticket,
    }  # fmt: skip


def unpack_rows(arrays: Arrays, prefix: str = "") -> Rows:
    names = ("coordinates", "values", "identity", "ticket")
    return Rows(*(arrays[prefix + name] for name in names))


def pack_leaves(leaves: Leaves) -> Arrays:
    return {
        "statistics": leaves.statistics, "turnover": leaves.turnover, "hull_low": leaves.hull.low, "hull_high": leaves.hull.high,
        "largest": leaves.largest.kept, "largest_floor": leaves.largest.floor,
        "smallest": leaves.smallest.kept, "smallest_floor": leaves.smallest.floor,
    }  # fmt: skip


def unpack_leaves(arrays: Arrays) -> Leaves:
    return Leaves(
        arrays["statistics"], arrays["turnover"], Hull(arrays["hull_low"], arrays["hull_high"]),
        Largest(arrays["largest"], arrays["largest_floor"]), Largest(arrays["smallest"], arrays["smallest_floor"]),
    )  # fmt: skip


def pack_part(part: LeafCounts, dimensions: int) -> bytes:
    rows = concatenate(part.offered) if part.offered else empty(dimensions)
    return to_bytes({**pack_leaves(part.leaves), **pack_outliers(part.outliers), **pack_rows(rows, "offered_")})


def unpack_part(data: bytes) -> LeafCounts:
    arrays = from_bytes(data)
    return LeafCounts(unpack_leaves(arrays), unpack_outliers(arrays), [unpack_rows(arrays, "offered_")])


def pack_outliers(outliers: Outliers) -> Arrays:
    return pack_rows(outliers.rows, "outlier_") | {
        "outlier_leaf": outliers.leaf, "outlier_bound": outliers.bound, "outlier_most": np.array(outliers.most)
    }  # fmt: skip


def unpack_outliers(arrays: Arrays) -> Outliers:
    rows = unpack_rows(arrays, "outlier_")
    return Outliers(rows, arrays["outlier_leaf"], arrays["outlier_bound"], int(arrays["outlier_most"]))


def delta_encode(values: Floats, leaf: Integers, leaves: int) -> Arrays:
    """Values as differences from a constant of their leaf, times a scale, in the narrowest type that loses nothing."""
    finite = np.isfinite(values)
    counts = np.maximum(np.bincount(leaf[finite], minlength=leaves), 1)
    base = np.round(np.bincount(leaf[finite], values[finite], leaves) / counts)
    for kind in _NARROW:
        for scale in _SCALES:
            with np.errstate(invalid="ignore", over="ignore"):
                delta = np.round((values - base[leaf]) * scale) if kind is not np.float32 else values - base[leaf]
                narrow = delta.astype(kind)
            encoded = {"base": base, "delta": narrow, "scale": np.array(scale)}
            if finite.all() and np.array_equal(_decoded(encoded, leaf), values):
                return encoded
    return {"base": np.zeros(leaves), "delta": values, "scale": np.array(1.0)}


def _decoded(encoded: Arrays, leaf: Integers) -> Floats:
    """The division comes last and is rounded as the original decimal was, so that cents come back exactly."""
    scale = float(encoded["scale"])
    if encoded["delta"].dtype in (np.float32, np.float64):
        return np.asarray(encoded["delta"].astype(np.float64) + encoded["base"][leaf])
    return np.asarray((encoded["delta"].astype(np.float64) + encoded["base"][leaf] * scale) / scale)


def pack_sample(sample: Sample) -> Arrays:
    leaves = len(sample.threshold)
    lines = {"value": sample.rows.values} | {f"c{place}": line for place, line in enumerate(sample.rows.coordinates)}
    packed = {f"sample_{name}_{part}": array for name, line in lines.items()
              for part, array in delta_encode(line, sample.leaf, leaves).items()}  # fmt: skip
    return packed | {
        "sample_identity": sample.rows.identity, "sample_ticket": sample.rows.ticket, "sample_threshold": sample.threshold,
        "sample_sizes": sample.sizes, "sample_settings": np.array([sample.target, sample.pooled, len(sample.rows.coordinates)]),
    }  # fmt: skip


def unpack_sample(arrays: Arrays) -> Sample:
    target, pooled, dimensions = arrays["sample_settings"].tolist()
    leaf = np.repeat(np.arange(len(arrays["sample_threshold"])), arrays["sample_sizes"])
    names = ["value", *(f"c{place}" for place in range(dimensions))]
    values, *lines = [
        _decoded({part: arrays[f"sample_{name}_{part}"] for part in ("base", "delta", "scale")}, leaf) for name in names
    ]
    rows = Rows(np.array(lines).reshape(dimensions, len(leaf)), values, arrays["sample_identity"], arrays["sample_ticket"])
    return Sample(rows, leaf, arrays["sample_threshold"], target, bool(pooled))


def pack_state(state: TreeState) -> Arrays:
    tree, scales = state.scales.tree, state.scales
    packed = pack_leaves(state.leaves) | pack_sample(state.sample) | pack_outliers(state.outliers)
    packed |= {
        "tree_dimension": tree.dimension, "tree_cut": tree.cut, "tree_right": tree.right,
        "tree_dimensions": np.array(tree.dimensions),
        "centre": np.array(scales.centre), "origin": scales.origin, "span": scales.span, "middle": scales.middle,
        "built_variance": state.built_variance,
    }  # fmt: skip
    return packed


def unpack_state(arrays: Arrays) -> TreeState:
    tree = Tree(arrays["tree_dimension"], arrays["tree_cut"], arrays["tree_right"], int(arrays["tree_dimensions"]))
    scales = Scales(tree, float(arrays["centre"]), arrays["origin"], arrays["span"], arrays["middle"])
    return TreeState(scales, unpack_leaves(arrays), unpack_sample(arrays), unpack_outliers(arrays), arrays["built_variance"])
