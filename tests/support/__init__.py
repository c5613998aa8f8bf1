"""What several tests need and nobody ships: real servers, brokers, databases and streams, and rows for streams."""
