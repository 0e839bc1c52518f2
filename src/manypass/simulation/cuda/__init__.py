"""The same learning on a GPU: one network a block of threads, its weights in registers."""
