"""Downloads from the Hub: they survive a crash, are checked before they get their names, and run apart.

The service's side is ``queue.Downloads``, with its records. The bytes are the business of a helper process
(``process``): it fetches parts of a file side by side (``fetcher``), keeps them in one part file with a
journal of what is durable (``part``), computes the SHA-256 as the file grows (``digest``) and renames a whole
set at once.
"""
