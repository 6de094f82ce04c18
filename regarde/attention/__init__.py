"""Attention: scores (how well a query matches a source state), mechanisms (which positions), normalizers.

attention = Global(Additive(query=512, state=1024, size=256))
memory = attention.remember(states, mask)     # (B, S, 1024), (B, S)
context, weights = attention(query, memory)   # (B, T, 512) -> (B, T, 1024), (B, 1, T, S)
"""

from regarde.attention.history import Coverage, CoverageConfig, Monotonic, MonotonicConfig
from regarde.attention.interface import Attention, Memory
from regarde.attention.kernel import KernelRegression
from regarde.attention.mechanisms import (
    AttentionConfig,
    Global,
    GlobalConfig,
    LocalM,
    LocalMConfig,
    LocalP,
    LocalPConfig,
)
from regarde.attention.multihead import MultiHead, MultiHeadConfig
from regarde.attention.normalizers import NORMALIZERS, NormalizerName, softmax, sparsemax
from regarde.attention.scores import (
    Additive,
    AdditiveConfig,
    Concat,
    ConcatConfig,
    Dot,
    DotConfig,
    Gaussian,
    GaussianConfig,
    General,
    GeneralConfig,
    Location,
    LocationConfig,
    NormedAdditive,
    NormedAdditiveConfig,
    ScaledDot,
    ScaledDotConfig,
    Score,
    ScoreConfig,
)

__all__ = [
    "NORMALIZERS",
    "Additive",
    "AdditiveConfig",
    "Attention",
    "AttentionConfig",
    "Concat",
    "ConcatConfig",
    "Coverage",
    "CoverageConfig",
    "Dot",
    "DotConfig",
    "Gaussian",
    "GaussianConfig",
    "General",
    "GeneralConfig",
    "Global",
    "GlobalConfig",
    "KernelRegression",
    "LocalM",
    "LocalMConfig",
    "LocalP",
    "LocalPConfig",
    "Location",
    "LocationConfig",
    "Memory",
    "Monotonic",
    "MonotonicConfig",
    "MultiHead",
    "MultiHeadConfig",
    "NormalizerName",
    "NormedAdditive",
    "NormedAdditiveConfig",
    "ScaledDot",
    "ScaledDotConfig",
    "Score",
    "ScoreConfig",
    "softmax",
    "sparsemax",
]
