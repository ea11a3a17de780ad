"""The innermost record of one kind around an instant, without flattening all records of a thread."""

from __future__ import annotations

import numpy as np

from analyzer.model import IntArray


def last_open(start_ns: IntArray, end_ns: IntArray, instants: IntArray) -> IntArray:
    """(k,) position of the last interval that starts at or before each instant and ends after it, -1 none.

    Intervals are sorted by (start, -end), so of nested ones it is the innermost. A tree of greatest ends is
    climbed and descended for all instants at once: O((n + k) log n) whatever the nesting.
    """
    found = np.full(len(instants), -1, np.int64)
    if not len(start_ns) or not len(instants):
        return found
    tree = _greatest(end_ns)
    leaves = len(tree) // 2
    bound = np.searchsorted(start_ns, instants, "right")  # candidates are [0, bound)
    active = np.flatnonzero(bound > 0)
    # Nodes cover [0, bound) from the right; a left child's sibling subtree lies further left.
    node = bound[active] + leaves - 1
    wanted = instants[active]
    while len(active):
        hit = tree[node] > wanted
        found[active[hit]] = _descend(tree, node[hit], wanted[hit]) - leaves
        active, node, wanted = active[~hit], node[~hit], wanted[~hit]
        # Climb until the node is a right child, whose left sibling is next; the leftmost path ends at 1.
        climbing = (node > 1) & (node % 2 == 0)
        while np.any(climbing):
            node = np.where(climbing, node // 2, node)
            climbing = (node > 1) & (node % 2 == 0)
        going = node > 1
        active, node, wanted = active[going], node[going] - 1, wanted[going]
    return found


def _greatest(end_ns: IntArray) -> IntArray:
    """Heap-ordered tree of greatest ends: node i holds the greater of nodes 2i and 2i + 1."""
    leaves = 1 << max(int(len(end_ns) - 1).bit_length(), 0)
    tree = np.full(2 * leaves, np.iinfo(np.int64).min, np.int64)
    tree[leaves : leaves + len(end_ns)] = end_ns
    width = leaves // 2
    while width:
        below = tree[2 * width : 4 * width]
        tree[width : 2 * width] = np.maximum(below[0::2], below[1::2])
        width //= 2
    return tree


def _descend(tree: IntArray, node: IntArray, wanted: IntArray) -> IntArray:
    """The rightmost leaf under each node whose end lies after the wanted instant."""
    leaves = len(tree) // 2
    inner = node < leaves
    while np.any(inner):
        right = 2 * node[inner] + 1
        node[inner] = np.where(tree[right] > wanted[inner], right, right - 1)
        inner = node < leaves
    return node
