"""Specs to cases, and cases to bytes: the drivers of choice, the data recipes and the memory of a call.

`words` is the one source of randomness, `choices` what a generator draws its decisions from, `recipes` what fills a
tensor, and `buffers` the guarded memory that an implementation is handed.
"""
