"""What decodes: tokens in, hypotheses out in the same order. Two engines behind one verb, `decode`.

native.py      the C++ library: no torch, no Python between two words
reference.py   torch: any model, any device
"""
