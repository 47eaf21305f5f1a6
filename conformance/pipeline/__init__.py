"""Any number of journals, judged and measured: on this machine's cores, or on Spark.

`sources` finds the sealed files, and `cut_runs` puts together runs that come in pieces; `units` cuts the work
into pieces that need nothing from each other, and judges one (by `columns`); `local` and `spark` spread them;
`summary` is what one piece shows and how two become one; `analysis` writes it all down.
"""
