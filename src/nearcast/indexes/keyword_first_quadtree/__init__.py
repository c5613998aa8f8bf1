"""Posting lists under the rarest keyword, each divided by a quadtree of its own."""
