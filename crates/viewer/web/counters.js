// The browser of counters.
