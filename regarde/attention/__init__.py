"""batch -> attention: scores say how well a query matches, mechanisms say where one may look.

attention = Global(Additive(query=512, state=1024, size=256))
memory = attention.remember(states, mask)     # (B, S, 1024), (B, S)
context, weights = attention(query, memory)   # (B, T, 512) -> (B, T, 1024), (B, 1, T, S)
"""

from regarde.attention.mechanisms import Attention, AttentionConfig, Global, GlobalConfig, Memory
from regarde.attention.scores import Additive, Concat, Dot, General, ScaledDot, Score, ScoreConfig

__all__ = [
    "Additive",
    "Attention",
    "AttentionConfig",
    "Concat",
    "Dot",
    "General",
    "Global",
    "GlobalConfig",
    "Memory",
    "ScaledDot",
    "Score",
    "ScoreConfig",
]
