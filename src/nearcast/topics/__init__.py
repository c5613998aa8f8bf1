"""Topics: logs of records that one process appends to and others read from a position on; in files, or in Kafka.

A gateway and a pipeline talk through three of them: subscriptions, messages, deliveries. A record is a CloudEvents 1.0 JSON
object (`records`). Whoever reads keeps its own position, together with what it made of the records, so that a restart neither
loses nor repeats any.
"""
