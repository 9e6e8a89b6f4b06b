"""What a run keeps: the run directory, records, manifest, summary, events, case files, provenance.

May import `core`, `speclang` and `adapters.protocol`. Start reading at `run_directory`, then `run_writer`.
"""
