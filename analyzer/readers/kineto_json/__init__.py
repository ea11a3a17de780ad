"""Reader of torch.profiler (Kineto) JSON traces."""

from analyzer.readers.kineto_json.reader import looks_like, read

__all__ = ["looks_like", "read"]
