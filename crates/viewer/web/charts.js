// The charts: what is drawn together, over time.
