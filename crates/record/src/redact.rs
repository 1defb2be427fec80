//! A recording that may be shared: command lines, user names, host and paths replaced.
