"""Sources and sinks: files, topics, Kafka, Delta."""
