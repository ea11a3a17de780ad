"""Which rank holds which part of a model: tensor, expert, pipeline and data parallelism.

Ranks count tensor parallelism fastest, then pipeline stages, then data replicas:
rank = (data · stages + stage) · tensor size + place in the tensor group.
Experts are divided over the ranks of one stage, in rank order, in blocks of consecutive experts.
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.errors import UsageError


@dataclass(frozen=True)
class Parallel:
    """Sizes of the groups, and layers per pipeline stage."""

    tensor: int
    expert: int
    pipeline: int
    data: int
    stage_layers: tuple[int, ...]

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.tensor * self.pipeline * self.data

    @property
    def ranks_per_stage(self) -> int:
        """Ranks that hold parts of the same layers."""
        return self.tensor * self.data

    @property
    def expert_tensor(self) -> int:
        """Over how many ranks each expert is split: what tensor parallelism leaves beside expert parallelism."""
        return max(1, self.tensor // self.expert)

    @property
    def replicas_per_expert_group(self) -> int:
        """How many data replicas send their tokens to the same experts."""
        return max(1, self.expert // self.tensor)

    @property
    def expert_copies(self) -> int:
        """How many times each expert is held."""
        return self.data // self.replicas_per_expert_group

    def rank(self, stage: int, place: int) -> int:
        """The rank at ``place`` (data · T + tensor) of a stage."""
        data, tensor = divmod(place, self.tensor)
        return (data * self.pipeline + stage) * self.tensor + tensor

    def expert_place(self, place: int) -> tuple[int, int]:
        """Which share of the experts the rank at ``place`` holds, and which part of each of them."""
        if self.expert <= self.tensor:
            return divmod(place % self.tensor, self.expert_tensor)
        return place % self.expert, 0

    def stage_of(self, layer: int) -> int:
        """The pipeline stage that holds ``layer``."""
        end = 0
        for stage, count in enumerate(self.stage_layers):
            end += count
            if layer < end:
                return stage
        raise IndexError(f"layer {layer} of {end}")


def parallel(
    *, tensor: int, expert: int, pipeline: int, data: int, layers: int, stage_layers: tuple[int, ...] | None
) -> Parallel:
    """The layout, checked against the model's number of layers. UsageError where it does not divide."""
    for option, size in (
        ("--tensor", tensor),
        ("--expert", expert),
        ("--pipeline", pipeline),
        ("--data", data),
    ):
        if size < 1:
            raise UsageError(option, "", f"is {size}; a group has at least one rank", "give 1 or more")
    if expert <= tensor and tensor % expert:
        why = f"is {expert}, which does not divide the {tensor} tensor-parallel ranks"
        raise UsageError(
            "--expert", "", why, "divide --tensor, or use a multiple of it (experts over replicas)"
        )
    if expert > tensor and (expert % tensor or data % (expert // tensor)):
        why = f"is {expert}: experts over several replicas need tensor ({tensor}) times a divisor of data ({data})"
        raise UsageError("--expert", "", why, f"up to --expert {tensor * data} is possible here")
    return Parallel(tensor, expert, pipeline, data, _stages(layers, pipeline, stage_layers))


def _stages(layers: int, pipeline: int, given: tuple[int, ...] | None) -> tuple[int, ...]:
    if given is None:
        if layers % pipeline:
            why = f"is {pipeline}, but the model has {layers} layers"
            hint = "engines divide such layers differently: say how with --stage-layers, such as 31,30"
            raise UsageError("--pipeline", "", why, hint)
        return (layers // pipeline,) * pipeline
    if len(given) != pipeline or sum(given) != layers or min(given) < 1:
        why = f"is {','.join(map(str, given))}: it must name {pipeline} stages with {layers} layers in all"
        raise UsageError("--stage-layers", "", why, "give the layers of each stage, in order")
    return given
