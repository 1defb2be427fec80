// Follows a running recording.
