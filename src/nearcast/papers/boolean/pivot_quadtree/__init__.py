"""Quadtree whose nodes know a few keywords, one of which each clause below has. Paper: Yu et al. 2015, PT-Quadtree."""
