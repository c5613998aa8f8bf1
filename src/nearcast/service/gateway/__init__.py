"""The service in front of a pipeline: it publishes to topics and reads the deliveries."""
