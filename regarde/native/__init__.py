"""The C++ library and its thin Python face. It knows no model: only sizes and pointers.

    library.py    which kernels there are, and calling one            no torch
    functions.py  cells, scores, loss and dropout as functions that torch can differentiate
    decoders.py   whole attentional decoders, the same way

Without it (no compiler at install, another kind of processor) plain torch serves.
"""
