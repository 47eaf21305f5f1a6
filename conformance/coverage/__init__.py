"""What of a client's library was executed: files, functions and branches, by what was done meanwhile.

``protocol_modules`` in ``adapter.toml`` names the library's modules that count. A language is one module with
a `CoverageMeter`: ``python`` (in this process and in others), ``node``, ``go``, ``java`` (with ``jacoco``)
and ``rust``, whose processes are told apart by ``processes``. Where a language has no branches, ``blocks``
puts files together. ``languages.meter_of`` chooses.
"""
