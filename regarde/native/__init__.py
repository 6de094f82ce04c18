"""The C++ library and a thin Python layer. It takes sizes and pointers and is independent of models.

    library.py    which kernels there are, and calling one            no torch
    functions.py  cells, scores, loss and dropout as functions that torch can differentiate
    decoders.py   whole attentional decoders, the same way

Without it (no compiler at install, an unsupported processor), torch computes the same.
"""
