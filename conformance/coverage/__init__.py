"""What of a client's library was executed: files, functions and branches, by what was done meanwhile.

``protocol_modules`` in ``adapter.toml`` names the library's modules that count. They are measured with the
package ``coverage``: in this process for clients that run in it, in the others by what it has for that.
"""
