// The findings, and what is not to blame.
