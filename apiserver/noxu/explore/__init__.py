"""Explore: run somebody's controller again and again, each time with one thing that a cluster does sooner or later."""
