"""Topics: logs of records, in files or in Kafka. A process appends; others read from a position on.

A gateway and a pipeline communicate through three topics: subscriptions, messages, deliveries. A record is a CloudEvents 1.0
JSON object (`records.py`). A reader stores its position together with the results of the records before it, so a restart
neither loses nor repeats any.
"""
