"""An index without a structure: it tests every clause against every live message."""
