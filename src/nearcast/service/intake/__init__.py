"""What clients send, checked and turned into what the engines take."""
