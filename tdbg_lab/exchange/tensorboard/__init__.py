"""Event files of TensorBoard, read and written without TensorBoard.

An event file is a sequence of records, each a length, a checksum, a protobuf message ``Event`` and
a checksum. `wire` knows protobuf, `records` the records, `events` the messages, `buckets`
histograms; `export` writes a run and `importing` reads one.
"""
