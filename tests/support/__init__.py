"""What several tests share: real servers, brokers, databases and streams, rows for streams, and variants of indexes."""
