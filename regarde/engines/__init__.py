"""Engines decode: tokens in, hypotheses out in the same order. Both have the method `decode`.

native.py      the C++ library: no torch, no Python between two words
reference.py   torch: any model, any device
"""
