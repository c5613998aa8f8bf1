"""Sources and sinks: files, Kafka topics, Delta."""
