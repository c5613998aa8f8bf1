"""The one writer: it runs the engines and commits batches; recovery after a restart."""
