"""What networks are made with."""

from wpk.nvinfer.binding import Binding


def network_flags(binding: Binding) -> int:
    """The flags of a network: strongly typed, which 10 must be told and 11 always is."""
    return 1 << int(binding.module.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
